import { validityRemark } from '../config/validity.ts'
import type { Lasting } from './gateway.ts'

const DAY = 24 * 60 * 60_000

/**
 * Says every day that the certificate should be renewed, or has run out. What is to be said of it when it is
 * read is a warning of the configuration.
 * @returns what ends it
 */
export function watchCertificate(
  { clock, log, shown }: Pick<Lasting, 'clock' | 'log' | 'shown'>,
): () => void {
  let timer = clock.setTimeout(look, DAY)
  function look(): void {
    for (const [index, certificate] of shown.chain.entries()) {
      const remark = validityRemark(certificate, index, clock.wall())
      if (remark !== null) log.warn(`server.tls.cert: ${remark}`)
    }
    timer = clock.setTimeout(look, DAY)
  }
  return () => timer.cancel()
}
