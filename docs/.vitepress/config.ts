import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { defineConfig } from 'vitepress'
import type { DefaultTheme } from 'vitepress'
import { deadLinks } from './dead-links.ts'
import { SECTIONS } from './navigation.ts'
import { checkNavigation } from './pages.ts'

const source = join(import.meta.dirname, '..')

checkNavigation(SECTIONS, readdirSync(source, { recursive: true, encoding: 'utf8' }))

const sidebar: DefaultTheme.SidebarItem[] = SECTIONS.map(({ text, items }) => ({
  text,
  items: items.map(item => ({ ...item })),
}))

export default defineConfig({
  title: 'Model Gateway',
  description: 'A reverse proxy for language and media models, configured by one YAML file.',
  lang: 'en',
  // For a host that serves the site below a path: DOCS_BASE=/gateway/ npm run build:docs
  base: process.env['DOCS_BASE'] ?? '/',
  outDir: '../dist/docs',
  cacheDir: '../node_modules/.cache/vitepress',
  metaChunk: true,
  lastUpdated: false,
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: markdown => {
      // A wide table scrolls by itself, not with the page.
      markdown.renderer.rules['table_open'] = () => '<div class="table" tabindex="0"><table>\n'
      markdown.renderer.rules['table_close'] = () => '</table></div>\n'
      // In a narrow column a long name breaks behind its parts, not inside a word.
      const codeInline = markdown.renderer.rules['code_inline']
      markdown.renderer.rules['code_inline'] = (...args) => (
        codeInline?.(...args).replaceAll(/(?<=>[^<]*)[._/](?=\w)/g, '$&<wbr>') ?? ''
      )
    },
  },
  head: [['link', { rel: 'icon', href: `${process.env['DOCS_BASE'] ?? '/'}icon.svg`, type: 'image/svg+xml' }]],
  themeConfig: {
    logo: '/icon.svg',
    nav: [
      { text: 'Start', link: '/getting-started' },
      { text: 'Clients', link: '/clients' },
      { text: 'Operate', link: '/operation/systemd' },
      { text: 'Reference', link: '/reference/configuration' },
    ],
    sidebar,
    outline: { level: [2, 3] },
    search: { provider: 'local' },
  },
  buildEnd: ({ outDir, site }) => {
    const dead = deadLinks(outDir, site.base)
    if (dead.length > 0) throw new Error(`dead links:\n${dead.join('\n')}`)
    writeCompressed(outDir)
  },
})

/** Writes gzip and Brotli versions beside each text, for the server to send. */
function writeCompressed(dir: string): void {
  for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(html|js|css|json|svg)$/.test(name)) continue
    const file = join(dir, name)
    const bytes = readFileSync(file)
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
    writeFileSync(`${file}.br`, brotliCompressSync(bytes))
  }
}
