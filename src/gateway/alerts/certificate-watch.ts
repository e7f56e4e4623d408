import { validityWarning } from '../../config/sections/pem.ts'
import type { SharedState } from '../../pipeline/parts/gateway.ts'

const CHECK_INTERVAL = 24 * 60 * 60_000

/**
 * Logs a warning once a day if the server certificate expires soon or has expired. When a certificate is loaded, the check of the
 * configuration logs the warning instead.
 * @returns a function that stops the watch
 */
export function watchCertificateValidity({ clock, log, shown }: Pick<SharedState, 'clock' | 'log' | 'shown'>): () => void {
  let timer = clock.setTimeout(check, CHECK_INTERVAL)
  function check(): void {
    for (const [index, certificate] of shown.chain.entries()) {
      const warning = validityWarning(certificate, index, clock.wall())
      if (warning !== null) log.warn(`server.tls.cert: ${warning}`)
    }
    timer = clock.setTimeout(check, CHECK_INTERVAL)
  }
  return () => timer.cancel()
}
