import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { GATEWAY, ROOT, listening } from '../cli/command.ts'
import { PYTHON } from '../support/python.ts'

const execute = promisify(execFile)

/** A directory with a configuration, and a gateway with that configuration; both are created at their first use. */
export class Place {
  readonly #t: Test
  readonly #dir: string
  #gateway: Promise<Addresses> | null = null

  constructor(t: Test) {
    this.#t = t
    // Below the project, so that programs find its packages.
    this.#dir = t.testdir({
      bin: {},
      '.curlrc': 'fail-with-body\nsilent\nshow-error\n',
      'gateway.yaml': readFileSync(join(ROOT, 'gateway.yaml'), 'utf8').replace(
        /127\.0\.0\.1:808\d/g, '127.0.0.1:0',
      ),
    })
    const command = `#!/bin/sh\nexec '${process.execPath}' '${GATEWAY}' "$@"\n`
    writeFileSync(join(this.#dir, 'bin', 'gateway'), command, { mode: 0o755 })
  }

  save(name: string, text: string): void {
    mkdirSync(dirname(join(this.#dir, name)), { recursive: true })
    // Only gateway.yaml is served, on free ports.
    const isMain = name === 'gateway.yaml'
    writeFileSync(join(this.#dir, name), isMain ? text.replace(/127\.0\.0\.1:808\d/g, '127.0.0.1:0') : text)
  }

  async run(language: string, text: string): Promise<{ ok: boolean, output: string }> {
    this.#gateway ??= this.#start()
    const { base, console, docs, simulator } = await this.#gateway
    const here = text.replaceAll('http://127.0.0.1:8080', base).replaceAll('http://127.0.0.1:8081', console)
      .replaceAll('http://127.0.0.1:8082', docs).replaceAll('http://127.0.0.1:8090', simulator)
    const [command, file] = language === 'sh' ? ['bash', 'sample.sh'] as const
      : language === 'js' ? [process.execPath, 'sample.mjs'] as const : [PYTHON, 'sample.py'] as const
    this.save(file, language === 'sh' ? `set -euo pipefail\n${here}` : here)
    const env = {
      PATH: `${join(this.#dir, 'bin')}:${dirname(process.execPath)}:${process.env['PATH']}`,
      HOME: this.#dir,
      CURL_HOME: this.#dir,
    }
    try {
      const { stdout, stderr } = await execute(command, [file], { cwd: this.#dir, env, timeout: 60_000 })
      return { ok: true, output: stdout + stderr }
    } catch (error) {
      const { stdout, stderr, message } = error as Error & { stdout?: string, stderr?: string }
      return { ok: false, output: `${message}\n${stdout ?? ''}${stderr ?? ''}` }
    }
  }

  async #start(): Promise<Addresses> {
    const served = await listening(this.#t, ['serve'], { cwd: this.#dir })
    const simulated = await listening(this.#t, ['simulate', '--listen', '127.0.0.1:0'], { cwd: this.#dir })
    const told = served.lines.find(({ msg }) => msg === 'listening') as { console: string, docs: string }
    return { base: served.base, console: told.console, docs: told.docs, simulator: simulated.base }
  }
}

interface Addresses {
  readonly base: string
  readonly console: string
  readonly docs: string
  readonly simulator: string
}
