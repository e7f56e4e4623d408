import '@mantine/core/styles.css'
import './theme.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { createQueryClient } from './api-hooks.ts'
import { theme } from './theme.ts'

const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no #root')

createRoot(root).render(
  <StrictMode>
    {/* The Content-Security-Policy blocks style elements, so theme.css sets Mantine's variables. */}
    <MantineProvider theme={theme} defaultColorScheme="auto" withCssVariables={false}
      withGlobalClasses={false}>
      <QueryClientProvider client={createQueryClient()}>
        <App />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
