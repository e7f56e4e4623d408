import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import type { Plugin } from 'vite'

/**
 * Beside each script and style sheet its compressed forms, for the
 * server to send: a third, and a fifth of the bytes.
 */
const compressed: Plugin = {
  name: 'compressed',
  writeBundle({ dir = '' }, bundle) {
    for (const name of Object.keys(bundle).filter(name => /\.(js|css|svg)$/.test(name))) {
      const file = join(dir, name)
      const bytes = readFileSync(file)
      writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
      writeFileSync(`${file}.br`, brotliCompressSync(bytes))
    }
  },
}

export default defineConfig({
  base: '/console/',
  plugins: [react(), compressed],
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
