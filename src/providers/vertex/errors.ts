import { asObject } from '../../protocols/neutral/json.ts'
import { decompressedOrRaw } from '../../protocols/http/decompress.ts'
import { parseBounded } from '../../base/json-size.ts'
import { errorType } from '../shared/error-types.ts'
import type { ResponseReading } from '../shared/provider.ts'
import { WholeBody } from '../shared/whole-body.ts'
import { codingOf, withoutBodyHeaders } from './response-headers.ts'

/** The operator's project in names of resources and quotas. It is masked, because clients must not see it. */
const PROJECT = /(\bprojects\/|\bproject_number:)[^/\s"'`\\,;)\]]+/g

/** Masks the operator's project in an error. Converts an error for Claude to Anthropic's format if it is in Google's format. */
export function readError(isClaude: boolean, status: number, headers: readonly string[]): ResponseReading {
  const coding = codingOf(headers)
  const decoder = new WholeBody(body => {
    const text = decompressedOrRaw(body, coding).toString('utf8').replace(PROJECT, '$1***')
    return isClaude ? claudeError(text, status) : text
  })
  const kept = withoutBodyHeaders(headers)
  return { headers: isClaude ? asJson(kept) : kept, decoder }
}

function asJson(headers: readonly string[]): string[] {
  return headers.map((value, i) => (i % 2 === 1 && headers[i - 1]?.toLowerCase() === 'content-type' ? 'application/json' : value))
}

/** Errors of the request are in Anthropic's format already. All other errors are in Google's format. */
function claudeError(text: string, status: number): string {
  const parsed = parse(text)
  if (parsed?.['type'] === 'error') return text
  const said = asObject(parsed?.['error'])?.['message']
  const message = typeof said === 'string' && said !== '' ? said : 'the upstream responded with an error'
  return JSON.stringify({ type: 'error', error: { type: errorType(status), message } })
}

function parse(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value = parseBounded(text)
    return asObject(Array.isArray(value) ? value[0] : value)
  } catch {
    // A proxy in front of the service may have sent an HTML page.
    return null
  }
}
