import { validityWarning } from '../config/validity.ts'
import type { SharedState } from '../context/gateway.ts'

const CHECK_INTERVAL = 24 * 60 * 60_000

/**
 * Says every day that the certificate should be renewed, or has run out. What is to be said of it when it is
 * read is a warning of the configuration.
 * @returns what ends it
 */
export function watchCertificateValidity(
  { clock, log, shown }: Pick<SharedState, 'clock' | 'log' | 'shown'>,
): () => void {
  let timer = clock.setTimeout(look, CHECK_INTERVAL)
  function look(): void {
    for (const [index, certificate] of shown.chain.entries()) {
      const remark = validityWarning(certificate, index, clock.wall())
      if (remark !== null) log.warn(`server.tls.cert: ${remark}`)
    }
    timer = clock.setTimeout(look, CHECK_INTERVAL)
  }
  return () => timer.cancel()
}
