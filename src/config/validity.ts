import type { X509Certificate } from 'node:crypto'

/** Milliseconds before its end from which on a certificate should be renewed; a quarter of a short life. */
const RENEWAL_PERIOD = 14 * 24 * 60 * 60_000
const RENEWAL_SHARE = 1 / 4

/**
 * What there is to say of the time for which one of a file's certificates is valid; null = nothing.
 * @param index its place in the file, from 0
 * @param now ms since 1970
 */
export function validityWarning(certificate: X509Certificate, index: number, now: number): string | null {
  const remark = validityProblem(certificate, now)
  return remark && `certificate ${index + 1} of the file ${remark}`
}

function validityProblem(certificate: X509Certificate, now: number): string | null {
  const { validFrom, validTo } = certificate
  const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()]
  if (to < now) return `has run out, on ${validTo}`
  if (from > now) return `is not valid before ${validFrom}`
  return to - now < Math.min(RENEWAL_PERIOD, (to - from) * RENEWAL_SHARE) ? `runs out soon, on ${validTo}` : null
}
