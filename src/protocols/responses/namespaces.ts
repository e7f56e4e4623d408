import type { BodyObject } from '../neutral/dialects/body-object.ts'
import type { NamespacedName } from '../neutral/request.ts'
import { fittingToolId } from '../neutral/tool-ids.ts'

/** OpenAI's models put tools without a namespace in this one: the prefix is left out. */
const PLAIN = 'functions'
/** Maximum length of a name in all protocols. */
const MAX_LENGTH = 64
/** Maximum characters of a namespace: each call in a response repeats it. */
const MAX_NAMESPACE = 256
const NAME = /^[\w-]+$/
/** Characters kept of a name that is too long: with the hash it has 64. */
const KEPT = 39

/** The namespace and name of a tool, or of a call; null = without a namespace. */
export function namespacedName(item: BodyObject, namespace = item.text('namespace')): NamespacedName | null {
  if (namespace === null || namespace === PLAIN) return null
  if (namespace.length > MAX_NAMESPACE) item.refuse('namespace', `it has more than ${MAX_NAMESPACE} characters`)
  return { namespace, name: item.text('name') ?? '' }
}

/**
 * The single name for a namespaced tool in protocols without namespaces: `collaboration__list_agents`. It is the same
 * in each request, so that calls of earlier turns fit.
 */
export function fullName({ namespace, name }: NamespacedName): string {
  const full = namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`
  const prefix = `${name.replaceAll(/[^\w-]/g, '_').slice(0, KEPT)}_`
  return fittingToolId(full, { pattern: NAME, maxLength: MAX_LENGTH, prefix })
}

/** The name of a tool, or of a call. */
export function toolName(item: BodyObject): string {
  const namespaced = namespacedName(item)
  return namespaced === null ? item.text('name') ?? '' : fullName(namespaced)
}
