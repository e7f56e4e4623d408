import { dirname, join } from 'node:path'
import { namesForeignHost } from '../auth/cross-site.ts'
import { keyFileOf } from '../auth/key-file.ts'
import { systemClock } from '../base/clock.ts'
import { placeOf } from '../config/problem.ts'
import type { MountHost, Mount, OpenMount } from '../pipeline/parts/mount.ts'
import { localAddressOf, writeHead, type ClientRequest, type ClientResponse } from '../proxy/client/client.ts'
import type { App } from './app.ts'
import type { Context } from './context.ts'
import { hasToken } from './http/cookies.ts'
import type { ClusterSource } from './reports/cluster-view.ts'
import { ConsoleStoreClient } from './store/console-store-client.ts'
import { Workers } from './state/workers.ts'

export interface ConsoleOptions {
  /** Clock for sessions. Default: the system clock. */
  readonly clock?: Context['clock']
  /** ms in which open responses must end when the gateway stops. Default: 5,000. */
  readonly drainTimeout?: number
  /** ms in which the body of an API request must arrive. Default: 30,000. */
  readonly bodyTimeout?: number
}

const DRAIN_TIMEOUT = 5_000
const BODY_TIMEOUT = 30_000
/** Requests with this prefix become exchanges of the gateway, which the gateway drains. */
const PLAYGROUND_PREFIX = '/console/api/playground/'
/** The status path of the gateway. For users of the console, the response has more details. */
const STATUS_PATH = '/api/status'

/** Loads the modules of the console at the first request, so that a console that is not used needs no memory. */
export function openConsole(options: ConsoleOptions = {}): OpenMount {
  return host => new Console(host, { clock: systemClock, drainTimeout: DRAIN_TIMEOUT, bodyTimeout: BODY_TIMEOUT, ...options })
}

class Console implements Mount {
  readonly #host: MountHost
  readonly #options: Required<ConsoleOptions>
  readonly #store: ConsoleStoreClient
  readonly #workers: Workers
  readonly #ledgerFile: string | null
  readonly #cluster: ClusterSource | null
  readonly #openResponses = new Set<ClientResponse>()
  #app: Promise<App> | null = null
  #drainTimer: NodeJS.Timeout | null = null

  constructor(host: MountHost, options: Required<ConsoleOptions>) {
    const { config: { ledger, cluster }, sharedState: { circuits, reloads, worker } } = host.current()
    const file = ledger && join(dirname(ledger.file), 'console.db')
    this.#host = host
    this.#ledgerFile = ledger?.file ?? null
    this.#cluster = cluster === null || cluster.postgres === null ? null : { url: cluster.postgres, instance: cluster.instance }
    this.#options = options
    this.#store = new ConsoleStoreClient({
      consoleFile: file, keyFile: ledger && keyFileOf(ledger.file),
      shared: this.#cluster && {
        url: this.#cluster.url, name: `gateway console ${this.#cluster.instance}`, gateway: this.#cluster.instance,
      },
    })
    circuits.subscribe(change => {
      this.#store.call('addCircuitChange', { ...change, worker: worker ?? 0 })
        .catch((error: unknown) => host.current().log.error({ err: error }, 'a circuit change cannot be stored, so the console does not show it'))
    })
    reloads.log.subscribe(reload => {
      const problems = reload.problems.map(problem => `${placeOf(problem)}: ${problem.message}`)
      this.#store.call('addReload', { ...reload, problems })
        .catch((error: unknown) => host.current().log.error({ err: error }, 'a reload cannot be stored in the audit log'))
    })
    this.#workers = new Workers({ current: () => host.current(), worker: worker ?? null, file, store: this.#store })
  }

  accepts({ url = '', method, headers }: ClientRequest): boolean {
    if (url.startsWith('/console/') || url.startsWith('/console?')) return true
    if (method !== 'GET' && method !== 'HEAD') return false
    const path = url.split('?', 1)[0] as string
    if (path === STATUS_PATH) return hasToken(headers.cookie)
    return (path === '/' || path === '/console') && !this.#host.current().routes.namesPath(path)
  }

  handle(req: ClientRequest, res: ClientResponse): void {
    const { server: { hosts }, console } = this.#host.current().config
    const named = { headers: req.headers, localAddress: localAddressOf(req) }
    const publicUrl = console?.publicUrl ?? null
    const isPublic = publicUrl !== null && !namesForeignHost(named, [new URL(publicUrl).hostname])
    if (!isPublic && namesForeignHost(named, hosts)) {
      return sendText(res, 403, 'The console is not served by this host name. Add the name to server.hosts.\n')
    }
    if (!req.url?.startsWith('/console/') && !req.url?.startsWith(STATUS_PATH)) {
      writeHead(res, 302, ['location', '/console/', 'content-length', '0'])
      res.end()
      return
    }
    if (!req.url.startsWith(PLAYGROUND_PREFIX) && !req.url.startsWith(STATUS_PATH)) {
      this.#openResponses.add(res)
      res.once('close', () => this.#openResponses.delete(res))
    }
    this.#app ??= this.#loadApp()
    this.#app.then(app => app.handle(req, res), error => this.#sendLoadError(res, error))
  }

  drain(): void {
    this.#drainTimer ??= setTimeout(() => {
      for (const res of this.#openResponses) res.destroy()
    }, this.#options.drainTimeout).unref()
  }

  async close(): Promise<void> {
    this.#workers.close()
    if (this.#drainTimer !== null) clearTimeout(this.#drainTimer)
    await this.#app?.then(app => app.close(), () => {})
    await this.#store.close()
  }

  async #loadApp(): Promise<App> {
    const { loadApp } = await import('./load-app.ts')
    const { clock, bodyTimeout } = this.#options
    return loadApp({
      host: this.#host, clock, store: this.#store, workers: this.#workers,
      ledgerFile: this.#ledgerFile, cluster: this.#cluster, bodyTimeout,
    })
  }

  #sendLoadError(res: ClientResponse, error: unknown): void {
    this.#host.current().log.error({ err: error }, 'the console cannot be loaded')
    this.#app = null
    sendText(res, 503, 'The console cannot be loaded. See the gateway log.\n', ['retry-after', '1'])
  }
}

function sendText(res: ClientResponse, status: number, text: string, headers: readonly string[] = []): void {
  writeHead(res, status, ['content-type', 'text/plain; charset=utf-8', ...headers])
  res.end(text)
}
