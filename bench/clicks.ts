/**
 * Claim: requests do not feel that somebody looks at the console. Requests come at
 * a fixed rate, in rounds by turns without anybody, with somebody who opens a few
 * pages of the console a second, and with somebody who opens one after the other as
 * fast as they come.
 *
 *   node bench/clicks.ts [ledger that bench/console.ts made] [requests/s] [seconds] [rounds]
 */
import { scryptSync } from 'node:crypto'
import { formatPasswordHash } from '../src/base/secrets/password.ts'
import { endAfter, median, printHeading, printTable, quantile } from './lib/figures.ts'
import { requestLoad } from './lib/load.ts'
import { firstByteTimes } from './lib/open-loop.ts'
import { pause, startGateway, startScript } from './lib/subjects.ts'

const ledger = process.argv[2]
const rate = Number(process.argv[3] ?? 300)
const seconds = Number(process.argv[4] ?? 5)
const rounds = Number(process.argv[5] ?? 5)

const NAME = 'ops'
const PASSWORD = 'bench'
const day = 86_400_000
const ago = (days: number) => new Date(Date.now() - days * day).toISOString()
const PAGES = [
  '/live', '/panel', `/upstreams?from=${ago(7)}`, `/billing?by=key&from=${ago(30)}`, '/budgets', '/keys',
  `/logs?from=${ago(30)}&end=failed`, '/logs?limit=200', '/routes', '/models', '/configuration', '/filters',
]

/** Milliseconds between two pages; null = nobody looks. */
const PACES = { nobody: null, 'three pages a second': 333, 'as fast as they come': 0 } as const

endAfter(120 + rounds * 3 * (seconds + 2))
const upstream = await startScript('direct', 'upstream.ts')
const gateway = await startGateway(upstream.port, {
  ...ledger !== undefined && { ledger },
  extra: `console: { listen: 127.0.0.1:0, users: [{ name: ${NAME}, role: admin, password: ` +
    `"${hashOf(PASSWORD)}" }] }`,
})
const api = `http://127.0.0.1:${gateway.console}/console/api`
const headers = await login()
const request = requestLoad()
await firstByteTimes(gateway.port, request, rate, 3)
for (const page of PAGES) await open(page)

const times = Object.entries(PACES).map(([name, pace]) => ({ name, pace, all: [] as number[][], pages: 0 }))
for (let round = 0; round < rounds; round++) {
  for (const each of times) {
    const watching = each.pace === null ? null : watch(each.pace)
    each.all.push(await firstByteTimes(gateway.port, request, rate, seconds))
    each.pages += await watching?.stop() ?? 0
  }
}
printHeading(`${rate} requests/s`, `${rounds} rounds of ${seconds} s`)
printTable(['first byte, ms', 'p50', 'p99', 'pages', 'rounds: p99'], times.map(({ name, all, pages }) => {
  const [p50 = [], p99 = []] = [0.5, 0.99].map(q => all.map(each => quantile(each, q)))
  return [
    name, median(p50).toFixed(2), median(p99).toFixed(2), String(pages),
    p99.map(ms => ms.toFixed(1)).join(' '),
  ]
}))
gateway.stop()
upstream.stop()

function watch(pace: number) {
  let isOver = false
  const clicking = (async () => {
    let count = 0
    while (!isOver) {
      const [rest] = [pause(pace), await open(PAGES[count % PAGES.length] as string)]
      count++
      await rest
    }
    return count
  })()
  return {
    stop: () => {
      isOver = true
      return clicking
    },
  }
}

async function open(page: string): Promise<void> {
  const answer = await fetch(api + page, { headers })
  if (answer.status !== 200) {
    throw new Error(`${page} was answered with ${answer.status}: ${await answer.text()}`)
  }
  await answer.arrayBuffer()
}

async function login(): Promise<Record<string, string>> {
  const answer = await fetch(`${api}/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: NAME, password: PASSWORD }),
  })
  if (answer.status !== 201) {
    throw new Error(`the login was answered with ${answer.status}: ${await answer.text()}`)
  }
  return { cookie: answer.headers.getSetCookie().map(cookie => cookie.split(';')[0]).join('; ') }
}

function hashOf(password: string): string {
  const cost = { N: 16_384, r: 8, p: 1 }
  const salt = Buffer.alloc(16, 's')
  return formatPasswordHash({ cost, salt, hash: scryptSync(password, salt, 32, cost) })
}
