import { Counter, Gauge, Registry, collectDefaultMetrics, type Metric } from 'prom-client'

/** The state of the gateway for gauges. It is read at each scrape. */
export interface GaugeSource {
  inFlight(): ReadonlyMap<string, number>
  /** Requests that wait for room, by whose limit has none. */
  queued(): ReadonlyMap<string, number>
  circuits(): readonly CircuitGauge[]
  /** The circuits of hooks; empty = there are none. */
  hookCircuits(): readonly { readonly hook: string, readonly state: CircuitGauge['state'] }[]
  budgets(): readonly BudgetGauge[]
  ledger(): { readonly pendingRows: number, readonly writeFailures: number } | null
  /** State of the rows that are sent to PostgreSQL; null = rows are not sent. */
  shipping(): { readonly outboxRows: number, readonly shippedRows: number, readonly failures: number } | null
  /** The stores that several gateways share, and whether each accepts writes. */
  stores(): readonly { readonly name: string, readonly isWritable: boolean }[]
  /** Time at which the listener's certificate expires, in ms since 1970; null = no TLS. */
  certificateEnd(): number | null
  reloads(): { readonly applied: number, readonly rejected: number, /** ms since 1970 */ readonly loadedAt: number }
}

export interface CircuitGauge {
  readonly upstream: string
  readonly model: string
  readonly state: 'closed' | 'half-open' | 'open'
}

export interface BudgetGauge {
  readonly holder: BudgetHolder
  readonly name: string
  /** The budget in USD. */
  readonly limit: number
  readonly spent: number
}

/** What a budget belongs to. Also a label of the budget metrics. */
export type BudgetHolder = 'key' | 'group'

/** The metric of the spend of each kind of holder. Do not add the two metrics: the spend of a key also counts for its groups. */
export const BUDGET_SPENT = { key: 'gateway_budget_spent_usd', group: 'gateway_group_budget_spent_usd' } as const
const BUDGET_LIMIT = { key: 'gateway_budget_limit_usd', group: 'gateway_group_budget_limit_usd' } as const

const CIRCUIT_STATES = { closed: 0, 'half-open': 1, open: 2 } as const

const EVENT_LOOP_RESOLUTION_MS = 50

/** Gauges with names of counters, which Prometheus' linter rejects. Other gauges have the same data by type. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/** Keeps prom-client from registering a metric globally: `createGauges` itself registers the metric. */
const UNREGISTERED = { registers: [] }

/** The current state of this process. `aggregator` tells prom-client how to merge the state of several processes. */
export function createGauges(source: GaugeSource, version: string): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_RESOLUTION_MS })
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  const metrics = [
    buildInfo(version), ...trafficGauges(source), ...budgetGauges(source, 'key'), ...budgetGauges(source, 'group'), ...ledgerMetrics(source), ...reloadMetrics(source),
    ...source.shipping() === null ? [] : shippingMetrics(source), storeGauge(source), hookGauge(source),
  ]
  for (const metric of metrics) registry.registerMetric(metric as Metric)
  return registry
}

function buildInfo(version: string): Gauge<'version' | 'node'> {
  const gauge = new Gauge({
    ...UNREGISTERED, name: 'gateway_build_info', help: 'The version of the gateway and of Node; always 1.',
    labelNames: ['version', 'node'], aggregator: 'first',
  })
  gauge.set({ version, node: process.version }, 1)
  return gauge
}

function plainGauge(name: string, help: string, value: () => number): Gauge {
  return new Gauge({
    ...UNREGISTERED, name, help,
    collect() {
      this.set(value())
    },
  })
}

function plainCounter(name: string, help: string, value: () => number): Counter {
  return new Counter({
    ...UNREGISTERED, name, help,
    collect() {
      this.reset()
      this.inc(value())
    },
  })
}

function trafficGauges(source: GaugeSource): unknown[] {
  return [
    new Gauge({
      ...UNREGISTERED, name: 'gateway_requests_in_flight', help: 'Running requests.', labelNames: ['protocol'],
      collect() {
        this.reset()
        for (const [protocol, count] of source.inFlight()) this.set({ protocol }, count)
      },
    }),
    new Gauge({
      ...UNREGISTERED, name: 'gateway_queue_depth', help: 'Requests that wait in a queue for room.', labelNames: ['scope'],
      collect() {
        this.reset()
        for (const [scope, count] of source.queued()) this.set({ scope }, count)
      },
    }),
    new Gauge({
      ...UNREGISTERED, name: 'gateway_circuit_state',
      help: 'The circuit of a model at an upstream: 0 closed, 1 half-open, 2 open.',
      labelNames: ['upstream', 'model'], aggregator: 'max',
      collect() {
        this.reset()
        const worst = new Map<string, number>()
        for (const { upstream, model, state } of source.circuits()) {
          const id = `${upstream}\n${model}`
          const value = Math.max(worst.get(id) ?? 0, CIRCUIT_STATES[state])
          worst.set(id, value)
          this.set({ upstream, model }, value)
        }
      },
    }),
  ]
}

function hookGauge(source: GaugeSource): unknown {
  return new Gauge({
    ...UNREGISTERED, name: 'gateway_hook_circuit_state', help: 'The circuit of a hook: 0 closed, 1 half-open, 2 open.',
    labelNames: ['hook'], aggregator: 'max',
    collect() {
      this.reset()
      for (const { hook, state } of source.hookCircuits()) this.set({ hook }, CIRCUIT_STATES[state])
    },
  })
}

function storeGauge(source: GaugeSource): unknown {
  return new Gauge({
    ...UNREGISTERED, name: 'gateway_store_writable', help: 'Whether Valkey or PostgreSQL took the last write of this gateway: 1 or 0.',
    labelNames: ['store'], aggregator: 'min',
    collect() {
      this.reset()
      for (const { name, isWritable } of source.stores()) this.set({ store: name }, Number(isWritable))
    },
  })
}

function budgetGauges(source: GaugeSource, holder: BudgetHolder): unknown[] {
  const options = { ...UNREGISTERED, labelNames: [holder], aggregator: 'max' as const }
  const help = `What a ${holder} has spent of its budget in the current period, in USD.`
  const spent = new Gauge({ ...options, name: BUDGET_SPENT[holder], help })
  const limit = new Gauge({
    ...options, name: BUDGET_LIMIT[holder], help: `The budget of a ${holder} for its current period, in USD.`,
    collect() {
      limit.reset()
      spent.reset()
      for (const budget of source.budgets()) {
        if (budget.holder !== holder) continue
        limit.set({ [holder]: budget.name }, budget.limit)
        spent.set({ [holder]: budget.name }, budget.spent)
      }
    },
  })
  // The order matters: the collector of the first gauge sets both.
  return [limit, spent]
}

function ledgerMetrics({ ledger }: GaugeSource): unknown[] {
  return [
    plainGauge('gateway_ledger_pending_rows', 'Rows of the ledger that are not written yet.', () => ledger()?.pendingRows ?? 0),
    plainCounter('gateway_ledger_write_failures_total', 'Failed attempts to write to the ledger.', () => ledger()?.writeFailures ?? 0),
  ]
}

function shippingMetrics({ shipping }: GaugeSource): unknown[] {
  const sent = 'Rows of the ledger that were sent to PostgreSQL.'
  const failed = 'Failed attempts to send ledger rows to PostgreSQL.'
  return [
    plainGauge('gateway_ledger_outbox_rows', 'Rows of the ledger that are not in PostgreSQL yet.', () => shipping()?.outboxRows ?? 0),
    plainCounter('gateway_ledger_shipped_rows_total', sent, () => shipping()?.shippedRows ?? 0),
    plainCounter('gateway_ledger_ship_failures_total', failed, () => shipping()?.failures ?? 0),
  ]
}

function reloadMetrics(source: GaugeSource): unknown[] {
  return [
    // Use the maximum: every worker reloads the same configuration, and this counts as one reload.
    new Counter({
      ...UNREGISTERED, name: 'gateway_config_reloads_total', help: 'Reloads of the configuration.',
      labelNames: ['result'], aggregator: 'max',
      collect() {
        const { applied, rejected } = source.reloads()
        this.reset()
        this.inc({ result: 'applied' }, applied)
        this.inc({ result: 'rejected' }, rejected)
      },
    }),
    new Gauge({
      ...UNREGISTERED, name: 'gateway_config_last_reload_success_timestamp_seconds',
      help: 'When the active configuration was loaded, in seconds since 1970.', aggregator: 'max',
      collect() {
        this.set(source.reloads().loadedAt / 1000)
      },
    }),
    new Gauge({
      ...UNREGISTERED, name: 'gateway_certificate_expiry_timestamp_seconds', labelNames: [],
      help: 'When the certificate of the listener ends, in seconds since 1970; absent without TLS.', aggregator: 'min',
      collect() {
        const end = source.certificateEnd()
        // Remove the gauge: a reset would set a gauge without labels to 0, which is a date.
        if (end === null) this.remove()
        else this.set(end / 1000)
      },
    }),
  ]
}
