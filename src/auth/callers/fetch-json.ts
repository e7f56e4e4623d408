import { boundedBody } from '../../base/bounded-body.ts'

const TIMEOUT_MS = 10_000
/** Entra ID publishes 20 kB of keys. */
const MAX_BYTES = 512 * 1024

/** Why nothing was read; the text is for the operator. */
export class IssuerUnavailable extends Error {
  override readonly name = 'IssuerUnavailable'
}

/** @returns the JSON at the URL, and ms for which it may be cached (null = it does not say) @throws IssuerUnavailable */
export async function fetchJson(url: string, stopped: AbortSignal): Promise<{ readonly value: unknown, readonly maxAgeMs: number | null }> {
  const deadline = AbortSignal.timeout(TIMEOUT_MS)
  try {
    // A redirect could lead to plain http.
    const response = await fetch(url, { signal: AbortSignal.any([stopped, deadline]), redirect: 'error', headers: { accept: 'application/json' } })
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new IssuerUnavailable(`${url} responded ${response.status}`)
    }
    const body = await boundedBody(response.body, MAX_BYTES)
    if (body === null) throw new IssuerUnavailable(`${url} sends more than ${MAX_BYTES / 1024} kB`)
    return { value: parse(body.toString(), url), maxAgeMs: maxAgeOf(response.headers.get('cache-control') ?? '') }
  } catch (error) {
    if (error instanceof IssuerUnavailable) throw error
    if (deadline.aborted) throw new IssuerUnavailable(`${url} did not respond within ${TIMEOUT_MS / 1_000} s`)
    const { cause } = error as { readonly cause?: { readonly code?: string, readonly message?: string } }
    throw new IssuerUnavailable(`${url} cannot be read: ${cause?.code ?? cause?.message ?? 'the connection was closed'}`)
  }
}

function parse(text: string, url: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new IssuerUnavailable(`${url} sends no JSON`)
  }
}

/** RFC 9111 section 5.2.2.1. */
function maxAgeOf(cacheControl: string): number | null {
  const seconds = /(?:^|,)\s*max-age\s*=\s*"?(\d{1,9})/i.exec(cacheControl)?.[1]
  return seconds === undefined ? null : Number(seconds) * 1_000
}
