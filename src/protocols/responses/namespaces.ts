import type { BodyObject } from '../neutral/dialects/body-object.ts'
import type { NamespacedName } from '../neutral/request.ts'
import { fittingToolId } from '../neutral/tool-ids.ts'

/** OpenAI's models use this namespace for tools without a namespace. */
const PLAIN = 'functions'
/** Maximum length of a tool's name in all protocols. */
const MAX_LENGTH = 64
/** Maximum characters of a namespace: each call in a response repeats the namespace. */
const MAX_NAMESPACE = 256
const NAME = /^[\w-]+$/
/** Characters kept of a name that is too long: the hash after them fills up MAX_LENGTH. */
const KEPT = 39

/** Reads the namespaced name of a tool or call; null = it has no namespace. */
export function namespacedName(item: BodyObject, namespace = item.text('namespace')): NamespacedName | null {
  if (namespace === null || namespace === PLAIN) return null
  if (namespace.length > MAX_NAMESPACE) item.refuse('namespace', `it has more than ${MAX_NAMESPACE} characters`)
  return { namespace, name: item.text('name') ?? '' }
}

/** The name in protocols without namespaces: `collaboration__list_agents`. It stays the same, so that earlier calls fit. */
export function fullName({ namespace, name }: NamespacedName): string {
  const full = namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`
  const prefix = `${name.replaceAll(/[^\w-]/g, '_').slice(0, KEPT)}_`
  return fittingToolId(full, { pattern: NAME, maxLength: MAX_LENGTH, prefix })
}

/** The name of a tool or call in protocols without namespaces. */
export function toolName(item: BodyObject): string {
  const namespaced = namespacedName(item)
  return namespaced === null ? item.text('name') ?? '' : fullName(namespaced)
}
