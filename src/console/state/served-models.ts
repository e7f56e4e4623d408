import type { Gateway } from '../../pipeline/parts/gateway.ts'
import { listedModels } from '../../pipeline/gateway-endpoints.ts'
import { PROTOCOLS } from '../../protocols/index.ts'

const TEXT_PATHS = PROTOCOLS.flatMap(({ textPath }) => textPath ?? [])
/** Maximum number of models, because clients choose the names, and each name costs a look-up in the routes. */
const MAX_MODELS = 300

/** The models that routes accept without naming them. @param used models in the ledger @returns sorted names by the index of the route */
export function servedModels(gateway: Gateway, used: readonly string[]): Map<number, string[]> {
  const { config, routes } = gateway
  const names = new Set([...listedModels(gateway), ...used].slice(0, MAX_MODELS))
  const literalPaths = [...new Set(config.routes.flatMap(({ path }) => (path === null || path.includes('*') ? [] : [path])))]
  const served = new Map<number, Set<string>>()
  for (const name of [...names].sort()) {
    for (const path of [...TEXT_PATHS.map(textPath => textPath(name)), ...literalPaths]) {
      const route = routes.match(path, name)
      if (route === null || route.models?.includes(name)) continue
      const models = served.get(route.index) ?? new Set()
      served.set(route.index, models.add(name))
    }
  }
  return new Map([...served].map(([index, models]) => [index, [...models]]))
}
