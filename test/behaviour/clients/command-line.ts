import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { KEY_ENVIRONMENT, setAwsEnvironment } from '../../support/bedrock.ts'
import { USAGE, startVendor } from '../../support/vendors/vendor.ts'
import type { Conversation, Received, ScriptedUpstream, Turn, Vendor } from '../../support/vendors/vendor.ts'
import { openBooks, usedIn } from '../billing/books.ts'

const CLIENTS = fileURLToPath(new URL('../../clients/node_modules', import.meta.url))
const BINARIES = join(CLIENTS, '.bin')
/** ms after which a hanging client is killed, so that the test shows its output. */
const PATIENCE_MS = 150_000

/** The environment of a client. */
export interface Place {
  /** The gateway's address. */
  readonly url: string
  readonly home: string
  /** The working directory, with question.txt and picture.png. */
  readonly directory: string
}

/** A command-line client, and the turns of a model that call the tools of the client. */
export interface Client {
  readonly command: string
  /** The protocol as named in the ledger. */
  readonly protocol: string
  readonly args: (place: Place) => readonly string[]
  readonly env: (place: Place) => Readonly<Record<string, string>>
  /** Writes the client's settings. */
  readonly prepare?: (place: Place) => void
  /** The turn that reads question.txt and picture.png, and runs a command that writes counted.txt. */
  readonly look: (place: Place) => Turn
  /** The turn that writes SOLUTION to solution.txt. */
  readonly write: (place: Place, conversation: Conversation) => Turn
}

export const PROMPT = 'Write the solution of question.txt to solution.txt.'
/** Text with characters that faulty escapes or encodings break. */
export const QUESTION = 'What is 6 * 7? "Tell me", it says. \\u00e4 is ä 🐦\n'
export const SOLUTION = 'The number is 42. "\\n" ends no line: ä 🐦\n'
/** An image of one pixel. */
const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const LAST_WORDS = 'The solution is in the file.'

/** Why a client cannot be tried; false = it is installed. */
export function isMissing(command: string): string | false {
  return existsSync(join(CLIENTS, '.installed')) && existsSync(join(BINARIES, command)) ? false : `no ${command}: run test/clients/install`
}

function preparePlace(t: Test): Pick<Place, 'home' | 'directory'> {
  const folder = mkdtempSync(join(tmpdir(), 'client-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  const paths = { home: join(folder, 'home'), directory: join(folder, 'work') }
  for (const path of Object.values(paths)) mkdirSync(path)
  writeFileSync(join(paths.directory, 'question.txt'), QUESTION)
  writeFileSync(join(paths.directory, 'picture.png'), Buffer.from(PICTURE, 'base64'))
  return paths
}

/**
 * A session of a client with several turns, through the gateway: the tools ran, the upstream found no fault in what it was
 * sent, the ledger has the tokens of each request, and nothing was sent anywhere else.
 *
 * @returns what the upstream was sent
 */
export async function holdSession(t: Test, client: Client, vendor: Vendor): Promise<readonly Received[]> {
  const paths = preparePlace(t)
  const results: string[] = []
  const session = await runSession(t, client, vendor, paths, (conversation, place) => {
    // Clients also send requests for titles and similar texts.
    if (conversation.tools.length === 0) return { text: 'A question' }
    if (conversation.rounds === 0) return { thinking: 'It has a question.', text: 'I look.', ...client.look(place) }
    results.push(...conversation.results)
    if (conversation.rounds === 1) return { thinking: 'I know it.', ...client.write(place, conversation) }
    return { text: LAST_WORDS }
  })
  const { upstream, place } = session
  t.ok(results.some(result => result.includes(QUESTION.trim())), 'the model read the file', { results })
  t.ok(JSON.stringify(upstream.requests.at(-1)?.body).includes(PICTURE), 'the model saw the picture', { results })
  t.equal(contentOf(place, 'counted.txt')?.trim(), String(Buffer.byteLength(QUESTION)), 'the command ran', { results })
  t.equal(contentOf(place, 'solution.txt')?.trim(), SOLUTION.trim(), 'the file was written', { results })
  await checkLedger(t, client, vendor, session)
  return upstream.requests
}

/** A client that delegates a part to another agent, and whose conversation is compacted. */
export interface DelegatingClient extends Client {
  /** The turn that gives TASK to an agent. */
  readonly delegate: (place: Place) => Turn
  /** The turn that waits for the agent, if the client does not wait by itself. */
  readonly collect?: (conversation: Conversation) => Turn
  /** The following turns of the agent; absent = a text. @param time number of the turn, from 1 */
  readonly report?: (text: string, time: number) => Turn
  /** Is a request from the agent? Absent = the body contains TASK and not PROMPT. @param text of the body */
  readonly isAgent?: (text: string) => boolean
  /** Text in a request for a summary of the conversation. */
  readonly compaction: RegExp
}

export const TASK = 'Read question.txt and look at picture.png.'
const REPORT = 'The question is about six times seven.'
const SUMMARY = '<summary>The file solution.txt is still to be written.</summary>'

/**
 * A session in which another agent does a part, and the conversation is compacted: the agent gets its task, the model its report
 * and the summary, and the vendor finds no fault in any of it.
 */
export async function holdDelegatedSession(t: Test, client: DelegatingClient, vendor: Vendor): Promise<void> {
  const seen = { agent: 0, task: false, report: false, compactions: 0, summary: false }
  /** Turns of the delegating model, counted here, because a compaction shortens the conversation in the request. */
  let turn = 0
  const session = await runSession(t, client, vendor, preparePlace(t), (conversation, place, text) => {
    const isAgent = client.isAgent?.(text) ?? (text.includes(TASK) && !text.includes(PROMPT))
    seen.summary ||= text.includes('still to be written')
    seen.report ||= !isAgent && text.includes(REPORT)
    if (client.compaction.test(text)) {
      seen.compactions++
      return { text: SUMMARY }
    }
    if (conversation.tools.length === 0) return { text: 'A question' }
    if (isAgent) {
      seen.task ||= text.includes(TASK)
      seen.agent++
      return seen.agent === 1 ? { thinking: 'I have a task.', text: 'I look.', ...client.look(place) } : client.report?.(REPORT, seen.agent - 1) ?? { text: REPORT }
    }
    turn++
    if (turn === 1) return { thinking: 'Another does it.', text: 'I ask.', ...client.delegate(place) }
    if (client.collect !== undefined && !seen.report && turn < 6) return { thinking: 'I wait.', ...client.collect(conversation) }
    if (contentOf(place, 'solution.txt') === null && turn < 9) return { thinking: 'I know it.', ...client.write(place, conversation) }
    return { text: LAST_WORDS }
  })
  t.match(seen, { task: true, report: true, summary: true }, 'what the model was sent', { seen })
  t.ok(seen.compactions > 0, 'the conversation was compacted')
  t.equal(contentOf(session.place, 'counted.txt')?.trim(), String(Buffer.byteLength(QUESTION)), "the agent's command ran")
  t.equal(contentOf(session.place, 'solution.txt')?.trim(), SOLUTION.trim(), 'the file was written')
  await checkLedger(t, client, vendor, session)
}

interface Session {
  readonly upstream: ScriptedUpstream
  readonly place: Place
  readonly books: Awaited<ReturnType<typeof openBooks>>
}

/** @param script also gets the body of the request as text */
async function runSession(
  t: Test, client: Client, vendor: Vendor, paths: Pick<Place, 'home' | 'directory'>, script: (conversation: Conversation, place: Place, text: string) => Turn,
): Promise<Session> {
  const { model = 'upstream-model' } = vendor
  setAwsEnvironment(t, KEY_ENVIRONMENT)
  const upstream = await startVendor(t, vendor, (conversation, { body }) => script(conversation, place, JSON.stringify(body)))
  const books = await openBooks(t, `
upstreams: { up: { ${vendor.settings?.(upstream.url) ?? `url: "${upstream.url}"`}, speaks: [${vendor.protocol}] } }
routes: [{ to: { upstream: up, model: "${model}" } }]
${vendor.accepts === undefined ? '' : `models: { ${model}: { accepts: ${vendor.accepts} } }`}`)
  const place = { ...paths, url: books.gateway.url }
  client.prepare?.(place)
  const { code, stdout, stderr, elsewhere } = await run(t, client, place)
  const printed = { stdout, stderr, faults: upstream.faults, elsewhere }
  t.strictSame(upstream.faults, [], 'faults that the vendor finds in the requests')
  t.equal(code, 0, 'exit code', printed)
  t.match(stdout, LAST_WORDS, 'what the client prints', printed)
  t.strictSame(elsewhere, [], 'requests that bypass the gateway')
  return { upstream, place, books }
}

async function checkLedger(t: Test, client: Client, vendor: Vendor, { books, upstream }: Session): Promise<void> {
  const rows = [...(await books.drain()).values()].filter(row => row.upstream === 'up' && !/count/i.test(row.endpoint ?? ''))
  t.ok(rows.length >= 3, 'a row for each turn')
  t.equal(rows.length, upstream.requests.length, 'a row for each request')
  for (const row of rows) {
    t.match(row, { protocol: client.protocol, upstreamProtocol: vendor.protocol, end: 'complete', status: 200 })
    t.match(usedIn(row), vendor.reportsReasoning === false ? { ...USAGE, reasoning: 0 } : USAGE)
    t.equal(row.attempts[0]?.translated, client.protocol === vendor.protocol ? undefined : `${client.protocol}->${vendor.protocol}`)
  }
}

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Hosts other than the gateway that the client tried to reach. */
  readonly elsewhere: readonly string[]
}

/** Runs a client with a new environment. A proxy without connections gets all requests to other hosts. */
async function run(t: Test, client: Client, place: Place): Promise<Ended> {
  const elsewhere: string[] = []
  const proxy = createServer((req, res) => {
    elsewhere.push(req.url ?? '')
    res.writeHead(502).end()
  }).on('connect', (req, socket) => {
    elsewhere.push(req.url ?? '')
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => proxy.close().closeAllConnections())
  const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const variables = {
    PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter), HOME: place.home, LANG: 'C.UTF-8', TERM: 'dumb', CI: '1',
    HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl, http_proxy: proxyUrl, https_proxy: proxyUrl, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1',
    ...client.env(place),
  }
  // `env -i` removes the variables that the test runner adds to each process.
  const child = spawn('env', [
    '-i', ...Object.entries(variables).map(([name, value]) => `${name}=${value}`), join(BINARIES, client.command), ...client.args(place),
  ], { cwd: place.directory, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const kill = (): void => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL')
    } catch {
      // The client and all its processes have ended.
    }
  }
  t.teardown(kill)
  const patience = setTimeout(kill, PATIENCE_MS)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  clearTimeout(patience)
  return { code: code as number | null, stdout, stderr, elsewhere }
}

function contentOf({ directory }: Place, name: string): string | null {
  const file = join(directory, name)
  return existsSync(file) ? readFileSync(file, 'utf8') : null
}
