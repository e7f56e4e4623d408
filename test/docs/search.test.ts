import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import MiniSearch from 'minisearch'
import t from 'tap'
import { SECTIONS, searchWeight } from '../../docs/.vitepress/navigation.ts'

const DOCS = join(import.meta.dirname, '../../docs')

/** Common queries, and the page that the user looks for. */
const QUERIES: readonly (readonly [query: string, page: string])[] = [
  ['JWT', '/callers'],
  ['mTLS', '/operation/tls'],
  ['rerank', '/what-it-does-not-do'],
  ['queue', '/limits'],
  ['http proxy', '/operation/proxy'],
  ['guardrails', '/checks'],
  ['pii', '/checks'],
  ['response cache', '/what-it-does-not-do'],
  ['cursor', '/clients'],
  ['langchain', '/clients'],
  ['claude code', '/clients/claude-code'],
  ['docker', '/operation/container'],
  ['helm', '/operation/kubernetes'],
  ['prometheus', '/operation/telemetry'],
  ['grafana', '/operation/telemetry'],
  ['opentelemetry', '/operation/telemetry'],
  ['oidc', '/operation/single-sign-on'],
  ['webhook', '/operation/alerts'],
  ['rate limit', '/limits'],
  ['budget', '/limits'],
  ['virtual keys', '/migrate-from-litellm'],
  ['fallback', '/failover'],
  ['retries', '/failover'],
  ['certificate', '/operation/tls'],
  ['zero downtime', '/operation-reload'],
  ['postgres', '/more-than-one-machine'],
  ['redis', '/more-than-one-machine'],
  ['token count', '/metering'],
  ['pricing', '/metering'],
  ['s3', '/what-it-does-not-do'],
]

t.test('the search of the documentation ranks guides above the changelog', async t => {
  for (const base of ['/', '/gateway/']) {
    for (const guide of ['keys.html', 'keys.html#limits', 'clients/codex.html', 'operation/tls']) {
      t.equal(searchWeight(base + guide), 1, base + guide)
    }
    for (const background of ['changes.html', 'changes.html#added', 'benchmarks.html#proxy-ts']) {
      t.equal(searchWeight(base + background), 0.1, base + background)
    }
  }
})

t.test('for each common query the first result is the expected page', t => {
  const search = searchOf(SECTIONS.flatMap(({ items }) => items.map(({ link }) => link)))
  const firstPage = (query: string) => String(search.search(query)[0]?.id ?? 'nothing').replace(/#.*/, '')
  const wrong = QUERIES.filter(([query, page]) => firstPage(query) !== page).map(([query, page]) => `${query}: ${firstPage(query)}, not ${page}`)
  t.strictSame(wrong, [])
  t.end()
})

/** The index of the site: a document for each heading, with VitePress's options. */
function searchOf(pages: readonly string[]): MiniSearch {
  const search = new MiniSearch({
    fields: ['title', 'titles', 'text'],
    searchOptions: { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 }, boostDocument: searchWeight },
  })
  for (const page of pages) {
    const titles: string[] = []
    const source = readFileSync(join(DOCS, `${page}.md`), 'utf8').replace(/^```[^]*?^```/gm, block => block.replace(/^#/gm, ''))
    for (const [n, part] of source.split(/^(?=#{1,6} )/m).entries()) {
      const heading = /^(#{1,6}) (.*)/.exec(part)
      if (heading === null) continue
      const [whole, { length: level }, title = ''] = heading as unknown as [string, string, string]
      titles.length = level - 1
      search.add({ id: `${page}#${n}`, title, titles: titles.filter(Boolean), text: part.slice(whole.length) })
      titles[level - 1] = title
    }
  }
  return search
}
