import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { CommanderError } from 'commander'
import t from 'tap'
import type { Test } from 'tap'
import { usageCommand } from '../../src/cli/usage.ts'
import type { LedgerRow } from '../../src/ledger/row.ts'
import { ClusterLedger } from '../../src/cluster/ledger/cluster-ledger.ts'
import { Database } from '../../src/cluster/postgres/database.ts'
import { migrate } from '../../src/cluster/postgres/migrate.ts'
import { MIGRATIONS } from '../../src/cluster/postgres/migrations.ts'
import { draft, MIDNIGHT, row, stored } from '../ledger/rows.ts'
import { watch } from '../ledger/watched.ts'
import { PASSWORD, startPostgres, withoutPostgres } from '../support/postgres.ts'

const HOUR = 3_600_000
/** 2026-11-22T00:00Z */
const NOW = MIDNIGHT + 24 * HOUR

const CONFIG = `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
auth: open
`

interface Outcome {
  readonly out: string
  readonly err: string
  readonly code: number
}

async function usage(...args: string[]): Promise<Outcome> {
  const out: Buffer[] = []
  let err = ''
  const stdout = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      out.push(Buffer.from(chunk))
      setImmediate(done)
    },
  })
  const command = usageCommand({ stdout, now: () => NOW })
    .exitOverride()
    .configureOutput({ writeErr: text => (err += text), writeOut: text => out.push(Buffer.from(text)) })
  let code = 0
  try {
    await command.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    code = error.exitCode
  }
  return { out: Buffer.concat(out).toString(), err, code }
}

const ROWS = [
  row('r1', { startedAt: MIDNIGHT - HOUR }),
  row('r2', { startedAt: MIDNIGHT, key: 'team-b', costPico: 1n }),
  row('r3', { startedAt: MIDNIGHT + HOUR, model: 'unpriced', costPico: null, price: null }),
  row('r4', { startedAt: NOW - HOUR, key: null, end: 'refused', status: 401, upstream: null, costPico: 0n }),
]

/** A configuration with a ledger of these rows. */
async function configured(t: Pick<Test, 'testdir'>, rows: readonly LedgerRow[]): Promise<string> {
  const dir = t.testdir({ 'gateway.yaml': `${CONFIG}ledger: { file: data/gateway.db }\n` })
  const { ledger } = watch(join(dir, 'data', 'gateway.db'))
  for (const one of rows) ledger.close(one)
  await ledger.shutdown()
  return join(dir, 'gateway.yaml')
}

function ids(out: string): string[] {
  return out.trimEnd().split('\n').filter(line => line !== '')
    .map(line => (JSON.parse(line) as { request_id: string }).request_id)
}

t.test('without options usage prints a table of the requests and their total', async t => {
  const { out, code } = await usage('--config', await configured(t, ROWS))
  t.equal(code, 0)
  t.match(out, /^STARTED +REQUEST +KEY +MODEL +UPSTREAM +STATUS +END +MS +INPUT +CACHED +OUTPUT +USD\n/)
  t.match(out, /\n2026-11-21T00:00:00\.000Z +r2 +team-b +gpt-4.1-mini +openai +200 +complete +1,204 +1,200 /)
  t.match(out, / 1,000 +300 +0\.000000000001\n/)
  t.match(out, '\n\n4 requests, 1 of them without a price: 4,800 tokens in, 1,200 out, 0.000660000001 USD\n')
})

t.test('the table shows the last rows and the number of all rows', async t => {
  const rows = Array.from({ length: 60 }, (_, n) => row(`r${n}`, { startedAt: MIDNIGHT + n }))
  const config = await configured(t, rows)
  const { out } = await usage('--config', config)
  t.notMatch(out, / r9 /)
  t.match(out, / r10 [^]* r59 [^]*\n60 requests \(the last 50 are shown\)/)
  t.match((await usage('--config', config, '--limit', '2')).out, /the last 2 are shown/)
  t.match((await usage('--config', config, '--limit', '1')).out, /the last one is shown/)
})

t.test('--json prints each row as a line of JSON', async t => {
  const config = await configured(t, ROWS)
  const { out, code } = await usage('--config', config, '--json')
  t.equal(code, 0)
  t.strictSame(ids(out), ['r1', 'r2', 'r3', 'r4'])
  t.match(JSON.parse(out.split('\n')[2] ?? ''), {
    started_at: '2026-11-21T01:00:00.000Z',
    model: 'unpriced',
    end: 'complete',
    input_tokens: 1200,
    cost_usd: null,
  })
  t.strictSame(ids((await usage('--config', config, '--json', '--limit', '2')).out), ['r3', 'r4'])
})

t.test('--csv prints a header and a line for each row', async t => {
  const { out } = await usage('--config', await configured(t, ROWS), '--csv')
  t.match(out, /^request_id,started_at,/)
  t.equal(out.split('\r\n').length, 6)
})

t.test('--by prints the sums for each value of a column, as a table, JSON or CSV', async t => {
  const config = await configured(t, ROWS)
  const table = (await usage('--config', config, '--by', 'key')).out
  t.match(table, /^KEY +REQUESTS +INPUT +CACHED +CACHE WRITES +OUTPUT +REASONING +USD +UNPRICED\n/)
  t.match(table, /\n- +1 +1,200 /)
  t.match(table, /\nteam-a +2 +2,400 +2,000 +0 +600 +0 +0\.00066 +1\n/)
  t.match(table, /\n4 requests, 1 of them without a price: .* USD\n$/)
  const { out } = await usage('--config', config, '--by', 'day', '--json')
  t.strictSame(out.trimEnd().split('\n').map(line => JSON.parse(line) as unknown), [
    { day: '2026-11-20', requests: 1, input_tokens: 1200, cached_input_tokens: 1000, cache_write_tokens: 0,
      output_tokens: 300, reasoning_tokens: 0, cost_usd: 0.00066, unpriced_requests: 0 },
    { day: '2026-11-21', requests: 3, input_tokens: 3600, cached_input_tokens: 3000, cache_write_tokens: 0,
      output_tokens: 900, reasoning_tokens: 0, cost_usd: 1e-12, unpriced_requests: 1 },
  ])
  const csv = (await usage('--config', config, '--by', 'model', '--csv')).out
  t.match(csv, /^model,requests,[^]*\r\nunpriced,1,/)
  const upstreams = (await usage('--config', config, '--by', 'upstream', '--csv')).out
  t.match(upstreams, /^upstream,requests,[^]*\r\nopenai,3,/)
})

t.test('sums and rows are selected by user and tags', async t => {
  const config = await configured(t, [
    row('a', { user: 'u1', tags: { project: 'alpha' } }), row('b', { user: 'u2', tags: { project: 'alpha' } }),
    row('c', { user: 'u1', tags: { project: 'beta' } }), row('d'),
  ])
  const csv = async (...args: string[]) => (await usage('--config', config, '--csv', ...args)).out.split('\r\n')
    .map(line => line.split(',').slice(0, args.includes('--by') ? 3 : 1).join())
  t.strictSame(await csv('--by', 'tag:project,user'), ['tag:project,user,requests', ',,1', 'alpha,u1,1', 'alpha,u2,1', 'beta,u1,1', ''])
  t.strictSame(await csv('--where', 'tag:project=alpha', '--where', 'user=u2'), ['request_id', 'b', ''])
  t.strictSame(await csv('--where', 'tag:project=*a'), ['request_id', 'a', 'b', 'c', ''])
  t.match((await usage('--config', config, '--where', 'user=u1', '--by', 'model')).out, /\n2 requests/)
  t.match((await usage('--config', config, '--json', '--where', 'tag:project=beta')).out, /"user":"u1","tags":{"project":"beta"},"billed":null/)
})

t.test('filters select requests by time, upstream, key and other columns', async t => {
  const config = await configured(t, ROWS)
  for (const [args, wanted] of [
    [['--since', '2026-11-21'], 'r2 r3 r4'],
    [['--until', '2026-11-21'], 'r1'],
    [['--upstream', 'open*', '--until', '2026-11-21'], 'r1'],
    [['--upstream', 'elsewhere'], ''],
    [['--since', '2026-11-21T00:00:00.001Z'], 'r3 r4'],
    [['--since', '2026-11-21T02:00+01:00', '--until', '2026-11-21 22:00'], 'r3'],
    [['--since', '90m'], 'r4'],
    [['--since', '7d', '--until', '1h'], 'r1 r2 r3'],
    [['--key', 'team-*'], 'r1 r2 r3'],
    [['--key', 'team-b', '--model', 'gpt-*'], 'r2'],
    [['--model', 'nothing'], ''],
  ] as const) {
    t.equal(ids((await usage('--config', config, '--json', ...args)).out).join(' '), wanted, args.join(' '))
  }
  t.match((await usage('--config', config, '--model', 'nothing')).out, /\nNo requests\.\n$/)
  const table = (await usage('--config', config, '--key', 'team-b')).out
  t.match(table, /^STARTED.*\n\S+ +r2 +team-b .*\n\n1 request: 1,200 tokens in, /, 'the table has the same requests')
  const sums = (await usage('--config', config, '--key', 'team-b', '--by', 'model')).out
  t.match(sums, /^MODEL.*\ngpt-4.1-mini +1 .*\n\n1 request: 1,200 tokens in, /)
})

t.test('--request shows the attempts of one request and how its cost is computed', async t => {
  const config = await configured(t, ROWS)
  const { out, code } = await usage('--config', config, '--request', 'r1')
  t.equal(code, 0)
  t.match(out, /^Request r1\n/)
  t.match(out, 'attempt 1: openai: ok, status 200, after 1,200.25 ms')
  t.match(out, /output +300 x 1\.6\d* \/ 1,000,000 = 0\.00048\n/)
  t.match(out, /total +0\.00066 USD\n/)
  t.strictSame(ids((await usage('--config', config, '--request', 'r1', '--json')).out), ['r1'])
  const missing = await usage('--config', config, '--request', 'r99')
  t.match(missing, { code: 1, out: '', err: "error: the ledger has no request 'r99'\n" })
})

t.test('usage reads the ledger of a running gateway, and shows a running request only with --request', async t => {
  const dir = t.testdir({ 'gateway.yaml': `${CONFIG}ledger: { file: gateway.db }\n` })
  const config = join(dir, 'gateway.yaml')
  await using watched = watch(join(dir, 'gateway.db'))
  watched.ledger.open(() => draft('running'))
  watched.ledger.close(row('ended'))
  await watched.ledger.flush()
  t.strictSame(ids((await usage('--config', config, '--json')).out), ['ended'])
  t.match((await usage('--config', config, '--request', 'running')).out, 'it is still running')
  const json = await usage('--config', config, '--request', 'running', '--json')
  t.strictSame([json.code, json.out], [0, ''], 'JSON contains no running requests')
})

t.test('an invalid option is reported, and the exit code is 2', async t => {
  const config = await configured(t, ROWS)
  const no = (...args: string[]) => usage('--config', config, ...args)
  t.match(await no('--since', 'yesterday'), { err: /'--since <when>' argument 'yesterday' is invalid.*24h/ })
  t.match(await no('--since', '2026-02-30'), { err: /no such date/ })
  t.match(await no('--until', '2026-11-21T25:00'), { err: /no such date/ })
  t.match(await no('--by', 'week'), { err: /no group "week"; there is key, group, owner, model,/ })
  t.match(await no('--by', 'tag:Project'), { err: /name of a tag has lower-case letters/ })
  t.match(await no('--where', 'key=a'), { err: /user=NAME or tag:NAME=VALUE/ })
  t.match(await no('--where', 'tag:project'), { err: /user=NAME or tag:NAME=VALUE/ })
  t.match(await no('--where', 'tag:A=b'), { err: /name of a tag has lower-case letters/ })
  t.match(await no('--by', 'kye'), { err: /did you mean "key"/ })
  t.match(await no('--by', 'key,key'), { err: /key is given twice/ })
  t.match(await no('--by', 'key,model,day,hour'), { err: /at most 3 groups/ })
  t.match(await no('--json', '--csv'), { err: /cannot be used with option/ })
  t.match(await no('--limit', '0'), { err: /whole number/ })
  t.match(await no('--request', 'r1', '--by', 'key'), { err: /cannot be used with option/ })
  t.match(await no('--since', '1h', '--until', '2h'), { code: 2, err: /--since must be before --until/ })
  for (const { code, out } of [await no('--by', 'week'), await no('--limit', '-1')]) {
    t.not(code, 0)
    t.equal(out, '')
  }
})

t.test('an invalid configuration or ledger is reported', async t => {
  const dir = t.testdir({ 'bad.yaml': 'nonsense: true\n', 'none.yaml': CONFIG })
  const bad = await usage('--config', join(dir, 'bad.yaml'))
  t.match(bad, { code: 2, out: '', err: /bad\.yaml: \d+ errors?\n/ })
  t.match(await usage('--config', join(dir, 'missing.yaml')), { code: 2, err: /missing\.yaml/ })
  t.match(await usage('--config', join(dir, 'none.yaml')), { code: 2, err: /has no ledger/ })
  const file = join(dir, 'gateway.db')
  const config = join(dir, 'gateway.yaml')
  writeFileSync(config, `${CONFIG}ledger: { file: gateway.db }\n`)
  const missing = await usage('--config', config)
  t.match(missing, { code: 1, err: `cannot read the ledger ${file}: there is no such file` })
  writeFileSync(file, 'no database')
  const garbage = await usage('--config', config)
  t.match(garbage, { code: 1, err: /cannot read the ledger .*: file is not a database/ })
  rmSync(file)
  mkdirSync(file)
  t.match(await usage('--config', config), { code: 2, err: /gateway\.yaml: 1 error\n/ })
})

t.test('a pipe in place of the ledger is refused immediately', {
  skip: process.platform === 'win32' && 'no pipes',
}, async t => {
  const dir = t.testdir({ 'gateway.yaml': `${CONFIG}ledger: { file: pipe }\n` })
  execFileSync('mkfifo', [join(dir, 'pipe')])
  t.match(await usage('--config', join(dir, 'gateway.yaml')), { code: 2, err: /gateway\.yaml: 1 error\n/ })
})

t.test('usage does not fail if the reader of its standard output stops early', async t => {
  const config = await configured(t, Array.from({ length: 5000 }, (_, n) => row(`r${n}`)))
  const script = join(config, '..', 'main.mjs')
  writeFileSync(script, `
    import { usageCommand } from ${JSON.stringify(import.meta.resolve('../../src/cli/usage.ts'))}
    await usageCommand().parseAsync(process.argv.slice(2), { from: 'user' })`)
  const args = [script, '--config', config, '--json']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.stdout.destroy()
  const [code] = await once(child, 'exit') as [number | null]
  t.equal(code, 0)
})

t.test('with cluster.postgres, usage shows the requests of all gateways', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  const config = await configured(t, [ROWS[0]!])
  const withCluster = (url: string) => {
    const file = join(config, '..', 'cluster.yaml')
    writeFileSync(file, `${CONFIG}ledger: { file: data/gateway.db }\ncluster: { postgres: "${url}" }\n`)
    return file
  }
  const first = await usage('--config', withCluster(server.url()), '--json')
  t.equal(first.code, 0)
  t.match(first.err, /^warning: the ledger in PostgreSQL cannot be read \(no gateway has made the schema yet\)/)
  t.equal(first.out.trim().split('\n').length, 1, 'the ledger file is read in place of PostgreSQL')

  const database = new Database({ url: server.url(), name: 'test' })
  t.teardown(() => database.close())
  await migrate(database, MIGRATIONS)
  const ledger = new ClusterLedger(database)
  await ledger.insert(await ledger.register('other', 'gw2'), ROWS.slice(1).map(stored))
  const second = await usage('--config', withCluster(server.url()), '--json')
  t.equal(second.err, '')
  t.strictSame(second.out.trim().split('\n').map(line => JSON.parse(line).request_id), ['r2', 'r3', 'r4'])
  t.match((await usage('--config', withCluster(server.url()), '--by', 'key')).out, /3 requests, 1 of them without a price/)
  t.match((await usage('--config', withCluster(server.url()), '--request', 'r3')).out, /r3/)
  t.match((await usage('--config', withCluster(server.url()), '--request', 'r1')).out, /r1/, 'rows that are not sent to PostgreSQL yet')

  await server.stop()
  const third = await usage('--config', withCluster(server.url()))
  t.match(third.err, /warning: the ledger in PostgreSQL cannot be read .*of this gateway only/)
  t.notMatch(third.err, PASSWORD)
  t.match(third.out, /1 request/)
})
