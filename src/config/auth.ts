import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Path } from './document.ts'
import type { Findings } from './findings.ts'
import { checkHeaderValue, headerName } from './header.ts'
import type { RawAuth, RawSecret } from './raw.ts'
import type { Auth } from './types.ts'
import { checkQuotes, timerDurationOf } from './values.ts'

/** Milliseconds between two runs of a command, where the file does not say. */
const DEFAULT_COMMAND_INTERVAL = 15 * 60_000

/** Keys of `auth` that make a form of it, and the forms. */
const FORM_KEYS = ['bearer', 'header', 'value']
const FORMS = new Set(['bearer', 'header and value'])

/**
 * The credential of an upstream.
 *
 * @param directory what file names are relative to
 */
export function buildAuth(raw: RawAuth | undefined, directory: string, path: Path, findings: Findings): Auth | null {
  if (raw === undefined) return null
  const given = FORM_KEYS.filter(name => findings.has([...path, name])).join(' and ')
  if (!FORMS.has(given)) findings.error(path, 'auth takes either bearer, or header and value', 'key')
  const { bearer, header, value } = raw
  if (bearer !== undefined) {
    return headerAuth('authorization', 'Bearer ', bearer, directory, [...path, 'bearer'], findings)
  }
  if (header === undefined || value === undefined) return null
  return headerAuth(
    headerName(header, [...path, 'header'], findings), '', value, directory, [...path, 'value'], findings,
  )
}

function headerAuth(
  header: string, prefix: string, secret: RawSecret, directory: string, path: Path, findings: Findings,
): Auth | null {
  const headers = [header] as const
  if (typeof secret === 'string') {
    checkSecret(secret, prefix, path, findings)
    return { kind: 'static', headers, value: prefix + secret }
  }
  const { file: name, command, every } = secret
  const given = ['file', 'command'].filter(source => findings.has([...path, source]))
  if (given.length !== 1) findings.error(path, 'a secret comes from either a file or a command', 'key')
  if (every !== undefined && !findings.has([...path, 'command'])) {
    findings.error([...path, 'every'], 'this is for a command; a file is read when it changes', 'key')
  }
  if (name !== undefined) {
    const file = resolve(directory, name)
    warnOfMissingFile(file, [...path, 'file'], findings)
    return { kind: 'file', headers, prefix, file }
  }
  if (command === undefined || command.length === 0) return null
  return {
    kind: 'command',
    headers,
    prefix,
    command: command.filter(part => part !== undefined),
    every: timerDurationOf(every, [...path, 'every'], DEFAULT_COMMAND_INTERVAL, findings, 1_000),
  }
}

function checkSecret(secret: string, prefix: string, path: Path, findings: Findings): void {
  checkHeaderValue(secret, path, findings)
  checkQuotes(secret, path, findings)
  if (prefix !== '' && /^bearer\s/i.test(secret)) {
    findings.warn(path, 'the word Bearer is put in front of this value, and it is in it too')
  }
}

/** A secret may be there later: until then the upstream fails, and nothing else. */
function warnOfMissingFile(file: string, path: Path, findings: Findings): void {
  try {
    readFileSync(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    findings.warn(path, `the file cannot be read (${code}); until it can, requests to this upstream fail`)
  }
}
