import { X509Certificate } from 'node:crypto'
import { pino } from 'pino'
import t from 'tap'
import { watchCertificateValidity } from '../../../src/gateway/alerts/certificate-watch.ts'
import { selfSigned } from '../../support/certificate.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const DAY = 24 * 60 * 60_000

t.test('a certificate that expires soon is reported every day', async t => {
  const clock = new FakeClock() // the first of January 2026
  const told: string[] = []
  const log = pino({}, { write: line => void told.push((JSON.parse(line) as { msg: string }).msg) })
  const known = (to: string) => new X509Certificate(selfSigned('P-256', '200101000000Z', to).cert)
  const shown = { chain: [known('491231235959Z'), known('260120120000Z')] }
  const stop = watchCertificateValidity({ clock, log, shown })
  clock.advance(5 * DAY)
  t.strictSame(told, [], 'the certificate is valid for more than two weeks')
  clock.advance(2 * DAY)
  const remark = /^server\.tls\.cert: certificate 2 of the file runs out soon, on Jan 20 12:00:00 2026 GMT$/
  t.match(told.splice(0), [remark])
  clock.advance(12 * DAY)
  t.match(told.splice(0), Array.from({ length: 12 }, () => remark))
  clock.advance(DAY)
  t.match(told.splice(0), [/certificate 2 of the file has run out, on Jan 20/])
  shown.chain = [known('491231235959Z')]
  clock.advance(DAY)
  t.strictSame(told, [], 'the renewed certificate is not reported')
  stop()
  t.equal(clock.pending, 0)
})
