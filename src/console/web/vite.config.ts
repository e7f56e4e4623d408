import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/** Writes gzip and Brotli versions beside each script and style sheet, for the server to send. */
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
  // Packages at the root would otherwise resolve an older React than the workspace's.
  resolve: { dedupe: ['react', 'react-dom'] },
  build: {
    outDir: '../../../dist/console/web',
    emptyOutDir: true,
    target: 'es2023',
    // The Content-Security-Policy allows only files of the console: no data: URLs, no inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
})
