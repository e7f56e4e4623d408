import { createHash } from 'node:crypto'
import { Document, isCollection, isMap, isScalar, visit, type Scalar, type YAMLMap } from 'yaml'
import { printable } from '../config/text/source-text.ts'
import { readDeployments } from './litellm-deployments.ts'
import { MASTER_KEY, type ImportedKey } from './litellm-keys.ts'
import { notesOnUnusedSettings, type Note } from './litellm-notes.ts'
import { readPassThrough } from './litellm-pass-through.ts'
import { variableOf } from './litellm-references.ts'
import { FALLBACK_WEIGHT_RATIO, readRoutes, type Route } from './litellm-routes.ts'
import { ImportError, Source, formatPath } from './source.ts'

export interface Imported {
  /** The text of the new gateway.yaml. */
  readonly yaml: string
  /** What is missing or different in the result, in the order of the file. */
  readonly notes: readonly Note[]
  /** The environment variables to which the result refers. */
  readonly variables: readonly string[]
}

/**
 * Converts the configuration of a LiteLLM proxy to a configuration of the gateway.
 *
 * @param virtualKeys keys to add to the configuration
 * @throws ImportError if the text is not YAML, or if none of its models can be served
 */
export function importLitellm(text: string, virtualKeys: readonly ImportedKey[] = []): Imported {
  const source = new Source(text)
  if (source.length(['model_list']) === 0) throw new ImportError('it has no model_list')
  const { deployments, upstreams, models, notes } = readDeployments(source)
  const { routes: modelRoutes, notes: routeNotes } = readRoutes(source, deployments)
  const passThrough = readPassThrough(source)
  const routes = [...passThrough.routes, ...modelRoutes]
  const keys = readKeys(source)
  const log = readLog(source)
  const fileNotes = [...notes, ...routeNotes, ...passThrough.notes, ...keys.notes, ...log.notes, ...notesOnUnusedSettings(source)]
  const all = fileNotes.map(printableNote).toSorted(byPlace)
  if (routes.length === 0) {
    const reasons = all.map(({ place, text: reason }) => `${place}: ${reason}`).join('\n')
    throw new ImportError(`none of its models can be served\n${reasons}`)
  }
  const allKeys = [...keys.list, ...virtualKeys]
  const document = new Document({
    upstreams: Object.fromEntries([...upstreams, ...passThrough.upstreams]),
    routes: routes.map(compactRoute),
    ...models.size > 0 && { models: Object.fromEntries(models) },
    ...allKeys.length > 0 && { keys: allKeys },
    ...log.bodies && { log: { bodies: [log.bodies] } },
    ledger: { file: 'data/gateway.db' },
  })
  formatDocument(document, routes)
  const yaml = document.toString({ lineWidth: 110, flowCollectionPadding: true })
  return { yaml, notes: all, variables: variablesIn(yaml) }
}

/** Shortens a route: a target that has only an upstream becomes the upstream's name, and a list of one target becomes that target. */
function compactRoute(route: Route): object {
  const to = route.to.map(target => (Object.keys(target).length === 1 ? target.upstream : target))
  return { ...route, to: to.length === 1 ? to[0] : to }
}

/** Minimum characters of a safe key: `gateway check` warns of shorter keys. */
const SAFE_KEY_LENGTH = 16

function readKeys(source: Source): { list: object[]; notes: Note[] } {
  const path = ['general_settings', 'master_key']
  const key = source.text(path)
  const name = MASTER_KEY
  const variable = key === null ? null : variableOf(key)
  if (variable !== null) return { list: [{ name, key: `\${${variable}}` }], notes: [] }
  if (key !== null) {
    const short = `it has ${key.length} characters, and shorter keys than ${SAFE_KEY_LENGTH} can be guessed: replace it by one of gateway keys create`
    return {
      list: [{ name, sha256: createHash('sha256').update(key).digest('hex') }],
      notes: key.length < SAFE_KEY_LENGTH ? [{ place: source.place(path), setting: formatPath(path), text: short }] : [],
    }
  }
  const text = 'LiteLLM lets anybody in without it; the gateway lets nobody in without keys or `auth: open`'
  return { list: [], notes: [{ place: source.place(path), setting: 'general_settings.master_key', text }] }
}

/** Used if the file has no period: LiteLLM then keeps prompts forever. */
const DEFAULT_RETENTION = '30d'

/** Reads which bodies to keep. */
function readLog(source: Source): { bodies: object | null, notes: Note[] } {
  const path = ['general_settings', 'store_prompts_in_spend_logs']
  if (source.take(path) !== true) return { bodies: null, notes: [] }
  const written = source.text(['general_settings', 'maximum_spend_logs_retention_period'])
  const keep = written !== null && /^\d+(?:ms|s|m|h|d)$/.test(written) ? written : DEFAULT_RETENTION
  const text = `bodies of all keys are kept for ${keep}: see log.bodies`
  return { bodies: { key: '*', keep }, notes: [{ place: source.place(path), setting: formatPath(path), text }] }
}

const HEADING = ` Made from the configuration of a LiteLLM proxy. Check it with: gateway check
 LiteLLM listens on port 4000; for the same port: server: { listen: ":4000" }`

const COMMENTS: ReadonlyMap<string, string> = new Map(Object.entries({
  upstreams: " Each url comes before the client's path.",
  routes: ' The first route that matches takes the request.',
  models: " USD per million tokens. Other models have the catalogue's prices.",
  keys: ' The master key is an ordinary key here. For others: gateway keys create',
  ledger: ' One row for each request. Absent: nothing is recorded.',
}))

/** Adds comments and blank lines to the document, and writes small values on one line. */
function formatDocument(document: Document, routes: readonly Route[]): void {
  document.commentBefore = HEADING
  routes.forEach((route, index) => {
    const text = routeComment(route)
    const node = document.getIn(['routes', index], true)
    if (text !== '' && isCollection(node)) node.commentBefore = text
  })
  visit(document, {
    Map(_, node, ancestors) {
      if (ancestors.some(isFlow) || isSmall(node)) node.flow = true
    },
    Seq(_, node) {
      if (node.items.every(isScalar)) node.flow = true
    },
  })
  const blocks = isMap(document.contents) ? document.contents.items : []
  for (const [index, { key }] of blocks.entries()) {
    const name = key as Scalar
    name.commentBefore = COMMENTS.get(String(name.value)) ?? ''
    name.spaceBefore = index > 0
  }
}

function isFlow(node: unknown): boolean {
  return isCollection(node) && node.flow === true
}

/** Tells whether a map is small: a few scalars, such as a target or a credential. */
function isSmall(map: YAMLMap): boolean {
  const isBlock = map.items.some(({ key }) => ['url', 'to', 'name', 'file'].includes(String(key)))
  return map.items.length < 8 && !isBlock && map.items.every(({ value }) => !isCollection(value))
}

/** The comment on a route that works differently than in LiteLLM. */
function routeComment({ to, strategy }: Route): string {
  const hasFallbacks = strategy === 'weighted' && to.some(({ weight = 1 }) => weight === 1)
    && to.some(({ weight = 1 }) => weight >= FALLBACK_WEIGHT_RATIO)
  return hasFallbacks ? ' Targets without a weight are fallbacks: asked when the others fail, hardly ever first.' : ''
}

function variablesIn(yaml: string): string[] {
  const found = [...yaml.matchAll(/(?<!\$)\$\{([A-Za-z_]\w*)\}/g)].map(([, name = '']) => name)
  return [...new Set(found)].sort()
}

/** Makes a note printable, because it contains names from the file. */
function printableNote({ place, setting, text }: Note): Note {
  return { place, setting: printable(setting), text: printable(text) }
}

function byPlace(a: Note, b: Note): number {
  const [line = 0, column = 0] = a.place.split(':').map(Number)
  const [otherLine = 0, otherColumn = 0] = b.place.split(':').map(Number)
  return line - otherLine || column - otherColumn
}
