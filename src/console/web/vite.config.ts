import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  base: '/console/',
  plugins: [react()],
  // The workspace's React is newer than the one that packages at the root would find by themselves.
  resolve: { dedupe: ['react', 'react-dom'] },
  build: {
    outDir: '../../../dist/console/web',
    emptyOutDir: true,
    target: 'es2023',
    // The Content-Security-Policy admits files of the console alone: no data: URL, no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
})
