import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import type { Timer } from '../../base/clock.ts'
import { validityWarning } from '../../config/sections/pem.ts'
import { placeOf } from '../../config/problem.ts'
import type { Gateway, PassedShares } from '../../pipeline/parts/gateway.ts'
import { Webhook } from './webhook.ts'
import { BudgetCheck, type BudgetSpend, type Send } from './budget-check.ts'
import { CircuitReports } from './circuit-reports.ts'

/** ms between two checks of budgets, the ledger, stores and certificates. */
const CHECK_INTERVAL_MS = 5_000
/** ms before its expiry from which on a certificate is reported. */
const CERTIFICATE_MS = 14 * 24 * 60 * 60_000

/**
 * Reports alerts about circuits, reloads, budgets, the ledger, stores and certificates to the webhook.
 * @param passedShares stores the shares of budgets that were already reported
 * @returns a function that stops the reports
 */
export function watchAlerts(
  current: () => Gateway, budgetSpend: BudgetSpend = () => current().accounts.limiter.budgetSpend(),
  passedShares: PassedShares = { initial: null, save: () => undefined },
): () => void {
  const { sharedState: { clock, log, circuits, reloads }, config: { cluster, ledger } } = current()
  const webhook = new Webhook({
    config: () => current().config.alerts?.webhook ?? null,
    file: ledger && join(dirname(ledger.file), 'alerts.json'),
    gateway: cluster?.instance ?? hostname(),
    clock, log,
  })
  const send: Send = (event, id = randomUUID(), at = clock.wall()) => webhook.send({ id, at: new Date(at).toISOString(), ...event })
  const circuitReports = new CircuitReports(clock, send)
  circuits.subscribe(change => { if (current().config.alerts?.webhook) circuitReports.add(change) })
  reloads.log.subscribe(({ applied, problems }) => {
    if (applied) return
    const texts = problems.map(problem => `${placeOf(problem)}: ${problem.message}`)
    send({ type: 'reload.rejected', severity: 'error', subject: null, message: `Reload rejected: ${texts[0] ?? 'unknown'}`, data: { problems: texts } })
  })
  const checks = [new BudgetCheck(budgetSpend, passedShares), new LedgerCheck(), new StoreCheck(), new CertificateCheck()]
  let timer: Timer
  const checkAll = (): void => {
    if (current().config.alerts?.webhook) for (const each of checks) each.check(current(), send)
    timer = clock.setTimeout(checkAll, CHECK_INTERVAL_MS)
  }
  checkAll()
  return () => {
    timer.cancel()
    circuitReports.close()
    webhook.close()
  }
}

/** Reports that ledger rows cannot be written or sent to PostgreSQL, and later that they can. */
class LedgerCheck {
  readonly #failing = new Set<string>()

  check({ accounts: { ledger, shipping } }: Gateway, send: Send): void {
    const written = ledger?.stats()
    const shipped = shipping?.stats()
    this.#update('written', written?.healthy ?? true, written?.lastError?.message, send)
    this.#update('sent to PostgreSQL', shipped?.healthy ?? true, shipped?.lastError?.message, send)
  }

  #update(what: string, isHealthy: boolean, why: string | undefined, send: Send): void {
    if (isHealthy !== this.#failing.has(what)) return
    if (isHealthy) this.#failing.delete(what)
    else this.#failing.add(what)
    send({
      type: isHealthy ? 'ledger.recovered' : 'ledger.failed', severity: isHealthy ? 'info' : 'error', subject: null,
      message: isHealthy ? `Ledger rows are ${what} again` : `Ledger rows cannot be ${what}: ${why ?? 'unknown'}`, data: {},
    })
  }
}

/** Reports that Valkey or PostgreSQL accepts no writes, and later that it does. */
class StoreCheck {
  readonly #failing = new Set<string>()

  check({ sharedState: { stores } }: Gateway, send: Send): void {
    for (const { name, failure } of stores.all) {
      if ((failure === null) !== this.#failing.has(name)) continue
      if (failure === null) this.#failing.delete(name)
      else this.#failing.add(name)
      const title = name === 'valkey' ? 'Valkey' : 'PostgreSQL'
      send({
        type: failure === null ? 'store.recovered' : 'store.failed', severity: failure === null ? 'info' : 'error', subject: null,
        message: failure === null ? `${title} takes writes again` : `${title} takes no writes: ${failure}`, data: { store: name },
      })
    }
  }
}

/** Reports each certificate that expires soon. Each is reported once. */
class CertificateCheck {
  readonly #reported = new Set<string>()

  check({ sharedState: { shown: { chain } }, clock }: Gateway, send: Send): void {
    const now = clock.wall()
    for (const [index, certificate] of chain.entries()) {
      const { fingerprint256: fingerprint, validToDate } = certificate
      if (validToDate.getTime() - now > CERTIFICATE_MS || this.#reported.has(fingerprint)) continue
      this.#reported.add(fingerprint)
      const warning = validityWarning(certificate, index, now) ?? `certificate ${index + 1} of the file ends on ${validToDate.toISOString()}`
      send({
        type: 'certificate.expiring', severity: validToDate.getTime() < now ? 'error' : 'warning', subject: null,
        message: `server.tls.cert: ${warning}`, data: { valid_to: validToDate.toISOString() },
      })
    }
  }
}
