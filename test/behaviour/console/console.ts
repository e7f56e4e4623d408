import { openConsole } from '../../../src/console/open-console.ts'
import type { ConsoleOptions } from '../../../src/console/open-console.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import type { FolderOwner } from '../../support/folder.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { PASSWORD, cheapHash } from '../../support/operator.ts'

export { PASSWORD, cheapHash }

export const API = '/console/api'

/** An admin, a viewer and two keys; a simulator, and a ledger. */
export const YAML = `
server: { listen: 127.0.0.1:0 }
console:
  listen: 127.0.0.1:0
  users:
    - { name: ops, password: "${cheapHash(PASSWORD)}", role: admin }
    - { name: eye, password: "${cheapHash(PASSWORD)}", role: viewer }
upstreams: { sim: { simulator: true } }
routes: [{ model: [demo, "sim*"], to: sim }, { model: "other*", to: sim }]
models: { demo: { price: { input: 1, output: 2 } } }
keys: [{ name: test, key: ${KEY} }, { name: second, key: sk-second-0123456789abcdef, models: [demo] }]
ledger: { file: data/ledger.db }
`
export const SECOND_KEY = 'sk-second-0123456789abcdef'

export interface TestConsole extends TestGateway {
  /** URL of the listener of the console. */
  readonly console: string
  /** The clock of the console, which starts at the time of the machine. */
  readonly clock: FakeClock
  /** A new client that keeps its cookie and its CSRF token. */
  browser(): Browser
  login(body: object): Promise<Browser>
}

/** A gateway with its console; it is closed when the test ends. */
export async function startConsole(
  t: FolderOwner, yaml = YAML, env: Record<string, string> = {}, options: Omit<ConsoleOptions, 'clock'> = {},
): Promise<TestConsole> {
  const clock = new FakeClock()
  clock.advance(Date.now() - clock.wall())
  const gateway = await startTestGateway(t, yaml, env, { mount: openConsole({ clock, ...options }) })
  const console = gateway.addresses.console ?? ''
  const browser = () => new Browser(console)
  return {
    ...gateway,
    console,
    clock,
    browser,
    login: async body => {
      const asking = browser()
      const { status } = await asking.login(body)
      if (status !== 201) throw new Error(`the login was answered with ${status}`)
      return asking
    },
  }
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body; null = the body is not JSON. */
  readonly json: unknown
}

export interface Extra {
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Keeps a cookie and a token as a browser would. */
export class Browser {
  readonly #base: string
  cookie: string | null = null
  csrf: string | null = null

  constructor(base: string) {
    this.#base = base
  }

  async login(body: object): Promise<Answer> {
    const answer = await this.ask('/session', { method: 'POST', body })
    this.csrf = (answer.json as { csrf?: string } | null)?.csrf ?? this.csrf
    return answer
  }

  /** @param path below the API of the console; a path that starts with /console is not changed */
  async ask(path: string, { method = 'GET', body, headers = {} }: Extra = {}): Promise<Answer> {
    const url = this.#base + (path.startsWith('/console') ? path : API + path)
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: {
        ...this.cookie !== null && { cookie: this.cookie },
        ...this.csrf !== null && method !== 'GET' && { 'x-csrf-token': this.csrf },
        ...body !== undefined && { 'content-type': 'application/json' },
        ...headers,
      },
      ...body !== undefined && { body: JSON.stringify(body) },
    })
    for (const set of response.headers.getSetCookie()) {
      const [pair = ''] = set.split(';')
      this.cookie = pair.endsWith('=') ? null : pair
    }
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parsed(text) }
  }
}

/** Creates a key with that name. @returns the value of the key */
export async function makeKey(admin: Browser, name: string): Promise<string> {
  return ((await admin.ask('/keys', { method: 'POST', body: { name } })).json as { key: string }).key
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}

/** Sends a request of a client to the gateway. */
export async function chat(gateway: TestGateway, key = KEY, model = 'demo'): Promise<Response> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.arrayBuffer()
  return response
}
