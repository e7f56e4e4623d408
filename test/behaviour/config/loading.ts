import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import type { LoadedConfig } from '../../../src/config/load/load.ts'
import { ConfigError } from '../../../src/config/problem.ts'
import type { Problem } from '../../../src/config/problem.ts'
import type { Environment } from '../../../src/config/text/references.ts'

/** The smallest valid configuration. */
export const LEAST = 'upstreams: { demo: { simulator: true } }\nroutes: [{ to: demo }]\n'

/** Loads a text as the file gateway.yaml in the directory of the test. */
export function load(t: Test, text: string, env: Environment = {}): LoadedConfig {
  const file = join(t.testdir(), 'gateway.yaml')
  writeFileSync(file, text)
  return loadConfig(file, env)
}

/** @returns the errors and warnings about a text */
export function problems(t: Test, text: string, env: Environment = {}): readonly Problem[] {
  return problemsOf(() => load(t, text, env))
}

export function problemsOf(load: () => LoadedConfig): readonly Problem[] {
  try {
    return load().warnings
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}
