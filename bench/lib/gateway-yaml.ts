export const KEY = 'sk-bench-0123456789abcdef'

/** What differs from the usual configuration. */
export interface GatewayYaml {
  /** Lines of YAML that stand instead of the one route. */
  readonly routes?: string
  /** Further upstreams, in lines of YAML. */
  readonly upstreams?: string
  /** Further entries of `keys`, in lines of YAML. */
  readonly keys?: string
  /** Further keys of `server`, in YAML. */
  readonly server?: string
  /** Further top-level keys, in YAML. */
  readonly extra?: string
  /** The ledger's file; a new one by default. */
  readonly ledger?: string
}

/** The gateway as an operator runs it: a key with limits, price, ledger, a log line for each request. */
export function gatewayYaml(upstreamPort: number, options: GatewayYaml = {}): string {
  return `
server: { listen: 127.0.0.1:0${options.server === undefined ? '' : `, ${options.server}`} }
upstreams:
  up: { url: "http://127.0.0.1:${upstreamPort}" }
${options.upstreams ?? ''}
routes:
${options.routes ?? '  - { path: /v1/*, model: "*", to: up }'}
models: { m: { price: { input: 0.4, output: 1.6 } } }
keys:
  - name: bench
    key: ${KEY}
    limits:
      requests_per_minute: 100000000
      tokens_per_minute: 100000000000
      concurrent: 10000
      budget: { usd: 1000000, per: month }
${options.keys ?? ''}
ledger: { file: ${options.ledger ?? 'gateway.db'} }
${options.extra ?? ''}
`
}
