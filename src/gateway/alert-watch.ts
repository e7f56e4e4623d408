import { createHash, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Timer } from '../base/clock.ts'
import { formatUsd, picoUsd } from '../base/decimal.ts'
import { validityWarning } from '../config/pem.ts'
import { placeOf } from '../config/problem.ts'
import type { Gateway } from '../context/gateway.ts'
import { Webhook } from '../context/webhook.ts'
import type { AlertEvent } from '../context/webhook.ts'
import { effectiveLimits } from '../limits/effective-limits.ts'
import { periodOf } from '../limits/budget-account.ts'

/** ms between two looks at budgets, the ledger and certificates. */
const LOOK_INTERVAL_MS = 5_000
/** How long before its end a certificate is an alert, ms. */
const CERTIFICATE_MS = 14 * 24 * 60 * 60_000

/**
 * Tells the webhook what happens.
 *
 * @param current the gateway in force
 * @returns ends it
 */
export function watchAlerts(current: () => Gateway): () => void {
  const { sharedState: { clock, log, circuits, reloads }, config: { cluster } } = current()
  const webhook = new Webhook({
    config: () => current().config.alerts?.webhook ?? null,
    gateway: cluster?.instance ?? hostname(),
    clock, log,
  })
  const send = (event: Omit<AlertEvent, 'id' | 'at'>, id: string = randomUUID()): void =>
    webhook.send({ id, at: new Date(clock.wall()).toISOString(), ...event })
  circuits.subscribe(({ upstream, model, state, failures, first, last }) => {
    const what = model === null ? upstream : `${model} on ${upstream}`
    const why = state === 'open' && last !== null ? `: ${last.reason}` : ''
    send({
      type: state === 'open' ? 'circuit.opened' : 'circuit.closed', severity: state === 'open' ? 'error' : 'info', subject: upstream,
      message: `Circuit ${state}: ${what}${why}`, data: { upstream, model, failures, first, last },
    })
  })
  reloads.history.subscribe(({ applied, problems }) => {
    if (applied) return
    const texts = problems.map(problem => `${placeOf(problem)}: ${problem.message}`)
    send({ type: 'reload.rejected', severity: 'error', subject: null, message: `Reload rejected: ${texts[0] ?? 'unknown'}`, data: { problems: texts } })
  })
  const looks = [new BudgetLook(), new LedgerLook(), new CertificateLook()]
  let timer: Timer
  const look = (): void => {
    if (current().config.alerts?.webhook) for (const each of looks) each.look(current(), send)
    timer = clock.setTimeout(look, LOOK_INTERVAL_MS)
  }
  look()
  return () => {
    timer.cancel()
    webhook.close()
  }
}

type Send = (event: Omit<AlertEvent, 'id' | 'at'>, id?: string) => void

/** Keys that pass a share of their budget. */
class BudgetLook {
  /** By key: the largest share that it has passed in this period. */
  #passed: Map<string, { readonly share: number, readonly period: number }> | null = null

  look({ config, keyStore, accounts, clock }: Gateway, send: Send): void {
    const shares = config.alerts?.budget ?? []
    const spent = accounts.limiter.budgetSpend()
    const now = clock.wall()
    const before = this.#passed
    const passed = new Map<string, { readonly share: number, readonly period: number }>()
    for (const { name, limits } of [...config.keys, ...keyStore?.keys() ?? []]) {
      const { budget } = effectiveLimits(limits, config.limits).whole
      const pico = spent.get(name)
      if (budget === null || pico === undefined) continue
      const limit = picoUsd(budget.usd)
      const share = shares.findLast(each => pico * 100n >= limit * BigInt(each)) ?? 0
      const { start: period } = periodOf(budget.per, now)
      passed.set(name, { share, period })
      const known = before?.get(name)
      // What was so at the start is no event.
      if (before === null || share === 0 || (known?.period === period && known.share >= share)) continue
      // The same of all gateways that share the budget.
      const id = createHash('sha256').update(JSON.stringify(['budget', name, share, budget, period])).digest('hex').slice(0, 32)
      send({
        type: 'budget.reached', severity: share >= 100 ? 'error' : 'warning', subject: name,
        message: `${name} has used ${share} % of its budget: $${formatUsd(pico)} of $${budget.usd} ${budget.per === 'total' ? 'in total' : `per ${budget.per}`}`,
        data: { key: name, share, spent_usd: formatUsd(pico), limit_usd: budget.usd, per: budget.per },
      }, id)
    }
    this.#passed = passed
  }
}

/** Rows that cannot be written, or sent to PostgreSQL. */
class LedgerLook {
  readonly #failing = new Set<string>()

  look({ accounts: { ledger, shipping } }: Gateway, send: Send): void {
    const written = ledger?.stats()
    const shipped = shipping?.stats()
    this.#note('written', written?.healthy ?? true, written?.lastError?.message, send)
    this.#note('sent to PostgreSQL', shipped?.healthy ?? true, shipped?.lastError?.message, send)
  }

  #note(what: string, isHealthy: boolean, why: string | undefined, send: Send): void {
    if (isHealthy !== this.#failing.has(what)) return
    if (isHealthy) this.#failing.delete(what)
    else this.#failing.add(what)
    send({
      type: isHealthy ? 'ledger.recovered' : 'ledger.failed', severity: isHealthy ? 'info' : 'error', subject: null,
      message: isHealthy ? `Ledger rows are ${what} again` : `Ledger rows cannot be ${what}: ${why ?? 'unknown'}`, data: {},
    })
  }
}

/** Certificates that end soon. */
class CertificateLook {
  readonly #told = new Set<string>()

  look({ sharedState: { shown: { chain } }, clock }: Gateway, send: Send): void {
    const now = clock.wall()
    for (const [index, certificate] of chain.entries()) {
      const { fingerprint256: fingerprint, validToDate } = certificate
      if (validToDate.getTime() - now > CERTIFICATE_MS || this.#told.has(fingerprint)) continue
      this.#told.add(fingerprint)
      const warning = validityWarning(certificate, index, now) ?? `certificate ${index + 1} of the file ends on ${validToDate.toISOString()}`
      send({
        type: 'certificate.expiring', severity: validToDate.getTime() < now ? 'error' : 'warning', subject: null,
        message: `server.tls.cert: ${warning}`, data: { valid_to: validToDate.toISOString() },
      })
    }
  }
}
