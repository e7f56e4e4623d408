import { acceptsText } from '../../src/protocols/vendors/model-rules.ts'
import { VENDOR_RULES } from '../../src/protocols/vendors/vendor-rules.ts'
import type { VendorRule } from '../../src/protocols/vendors/vendor-rules.ts'
import { code, generatedFrom, table } from './markdown.ts'

/** docs/reference/models.md: what models accept in translated requests, from the table of the vendors' rules. */
export function modelRulesPage(): string {
  const rows = VENDOR_RULES.map(rule => [rule.about, conditions(rule), acceptsText(rule.accepts), rule.source])
  return `${generatedFrom('src/protocols/vendors/vendor-rules.ts')}

# What models accept

Models differ in what they accept more than protocols do. A request that is [translated](../translation.md) fits its model: what the
model does not accept is dropped, and \`x-gateway-dropped\` names it. With \`translate: strict\` the request gets a 400. An effort that
the model does not have becomes the nearest one below it, and a number above the highest becomes the highest. A request in the target's own
protocol passes byte for byte.

\`models.NAME.accepts\` [overrides these rules](configuration.md) for a model, under its name at the upstream or at the client.
\`models.NAME.base_model\` gives a name the rules of another model. \`gateway explain\` shows the rules that apply to a request, and where
each comes from.

${table(['Models', 'Where', 'Accepts', 'Source'], rows)}

If several rules fit, a later one overrides the earlier ones.
`
}

function conditions({ models, protocols, hosts, providers }: VendorRule): string {
  const parts = [
    ...protocols === undefined ? [] : [`targets that speak ${protocols.join(', ')}`],
    ...hosts === undefined ? [] : [`hosts ${code(hosts.source)}`],
    ...providers === undefined ? [] : [`upstreams at ${providers.join(', ')}`],
    ...models === undefined ? [] : [`models ${code(models.source)}`],
  ]
  return parts.join('; ').replaceAll('|', '\\|')
}
