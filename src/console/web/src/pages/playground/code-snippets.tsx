import { Tabs, TextInput } from '@mantine/core'
import { useState } from 'react'
import { CodeBlock } from '../../components/code-block.tsx'
import { Copy } from '../../components/copy.tsx'
import classes from './playground.module.css'
import type { Prompt } from './prompt.ts'
import { PLACEHOLDER, snippets } from './snippets.ts'

/** The request as code. @param baseUrl - initial value of the field for the base URL */
export function CodeSnippets({ prompt, baseUrl }: { readonly prompt: Prompt; readonly baseUrl: string }) {
  const [changed, setChanged] = useState<string | null>(null)
  const base = (changed ?? baseUrl).trim().replace(/\/+$/, '')
  const shown = snippets(prompt, base)
  return (
    <div className={classes.outcome}>
      <TextInput label="Base URL" size="sm" value={changed ?? baseUrl} spellCheck={false}
        className={classes.base}
        description={`Address of the gateway. Replace ${PLACEHOLDER} with your API key.`}
        onChange={event => { setChanged(event.currentTarget.value) }} />
      <Tabs defaultValue="curl" keepMounted={false}>
        <Tabs.List>
          {shown.map(({ language }) => <Tabs.Tab key={language} value={language}>{language}</Tabs.Tab>)}
        </Tabs.List>
        {shown.map(({ language, install, code }) => (
          <Tabs.Panel key={language} value={language}>
            <div className={classes.snippet}>
              <div className={classes.bar}>
                {install === null ? <span /> : <code className="dim">{install}</code>}
                <Copy value={code} what={`${language} code`} />
              </div>
              <CodeBlock label={`${language} code`}>{code}</CodeBlock>
            </div>
          </Tabs.Panel>
        ))}
      </Tabs>
    </div>
  )
}
