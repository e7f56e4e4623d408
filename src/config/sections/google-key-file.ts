import { readFileSync } from 'node:fs'
import { isObject } from '../../base/is-object.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'

/**
 * Required fields of a credentials file, by the type of the file. Source: https://google.aip.dev/auth/4110 and the pages that it links to.
 */
const REQUIRED: ReadonlyMap<string, readonly string[]> = new Map(Object.entries({
  service_account: ['private_key', 'client_email'],
  authorized_user: ['client_id', 'client_secret', 'refresh_token'],
  external_account: ['audience', 'subject_token_type', 'token_url', 'credential_source'],
  impersonated_service_account: ['service_account_impersonation_url', 'source_credentials'],
}))

/** Warns about an invalid key file. No error, because the file may be replaced later; until then, only requests that need it fail. */
export function checkGoogleKeyFile(file: string, path: Path, consequence: string, findings: Findings): void {
  const warn = (what: string): void => findings.warn(path, `${what}; until it is replaced, ${consequence}`)
  const text = textOf(file)
  if (text === null) return
  const json = parse(text)
  if (!isObject(json)) return warn('this is not a credentials file of Google Cloud: it is not a JSON object')
  const { type } = json
  const required = REQUIRED.get(String(type)) ?? []
  if (type === undefined) return warn('this is not a credentials file of Google Cloud: it has no type, such as service_account')
  const missing = required.filter(name => json[name] === undefined || json[name] === '')
  if (missing.length > 0) warn(`this credentials file of the type ${String(type)} has no ${missing.join(', ')}`)
  const key = json['private_key']
  if (type === 'service_account' && typeof key === 'string' && key !== '' && !key.includes('PRIVATE KEY-----')) warn('private_key in this file is not a key in PEM form')
}

/** @returns true = the file names its project, or cannot be read */
export function namesProject(file: string): boolean {
  const text = textOf(file)
  const json = text === null ? null : parse(text)
  return !isObject(json) || typeof json['project_id'] === 'string'
}

function textOf(file: string): string | null {
  try {
    const text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
    return text.trim() === '' ? null : text
  } catch {
    // Another check reports that the file is missing or empty.
    return null
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
