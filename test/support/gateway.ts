import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { loadConfig } from '../../src/config/load/load.ts'
import { openConsole } from '../../src/console/open-console.ts'
import type { ReloadResult } from '../../src/gateway/reloader.ts'
import { startGateway } from '../../src/gateway/server.ts'
import type { RunningGateway, ServerParts } from '../../src/gateway/server.ts'
import { makeFolder } from './folder.ts'
import type { FolderOwner } from './folder.ts'

export interface TestGateway extends RunningGateway {
  readonly url: string
  /** Every log line so far, parsed. */
  readonly logged: readonly Record<string, unknown>[]
  /** The configuration's file. */
  readonly file: string
  /** Reloads the configuration, after writing `yaml` to its file if given. */
  change(yaml?: string): Promise<ReloadResult>
  /** Resolves with the first log line, past or future, that `matches`. */
  waitForLog(matches: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>
}

/** The default key of test configurations. */
export const KEY = 'sk-test-0123456789abcdef'

/**
 * A gateway from the text of a configuration; it is closed when the test ends.
 * By default it listens on a free port, names the upstream in a response header, and has the key KEY.
 */
export async function startTestGateway(
  t: FolderOwner, yaml: string, env: Record<string, string> = {}, parts: Partial<ServerParts> = {},
): Promise<TestGateway> {
  const folder = t.folder ?? makeFolder()
  if (t.folder === undefined) t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, withDefaults(yaml))
  const { config, warnings } = loadConfig(file, env)
  const logged: Record<string, unknown>[] = []
  const waiting: {
    like: (line: Record<string, unknown>) => boolean
    tell: (line: Record<string, unknown>) => void
  }[] = []
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const part of chunk.toString().split('\n')) {
        if (part === '') continue
        const line = JSON.parse(part) as Record<string, unknown>
        logged.push(line)
        for (const waiter of waiting) if (waiter.like(line)) waiter.tell(line)
      }
      done()
    },
  })
  const gateway = await startGateway(config, {
    log: pino({ level: 'debug' }, sink), version: '0.0.0-test', mount: openConsole(), warnings, ...parts,
  })
  t.teardown(() => gateway.close())
  return {
    ...gateway,
    url: gateway.addresses.base,
    logged,
    file,
    change: yaml => {
      if (yaml !== undefined) writeFileSync(file, withDefaults(yaml))
      return gateway.reload(async () => loadConfig(file, env), 'test')
    },
    waitForLog: like => {
      const before = logged.find(like)
      if (before) return Promise.resolve(before)
      const { promise, resolve } = Promise.withResolvers<Record<string, unknown>>()
      waiting.push({ like, tell: resolve })
      return promise
    },
  }
}

function withDefaults(yaml: string): string {
  let text = yaml
  if (!/^server:/m.test(text)) text = `server: { listen: 127.0.0.1:0, reveal_upstream: true }\n${text}`
  if (!/^keys:|^auth:/m.test(text)) text += `\nkeys: [{ name: test, key: ${KEY} }]\n`
  return text
}
