import { isAlias, isScalar, parseDocument, visit } from 'yaml'
import type { Scalar } from 'yaml'
import { parseYaml } from './document.ts'
import { readSchema } from './json-schema.ts'
import { splitReferences } from './references.ts'
import { secretRanges } from './secrets.ts'
import { SourceText, overlapping } from './source-text.ts'
import type { Range } from './source-text.ts'

const MASK = '***'
/** As `gateway keys list` shows. */
const DIGEST_PREFIX_LENGTH = 8

/**
 * A configuration for people to read: YAML made from what the text says, without
 * its comments. References to the environment stand as they were written, and
 * secrets that were written out are masked.
 *
 * @param text of a configuration that was taken
 */
export function maskedYaml(text: string): string {
  const source = new SourceText(text)
  const { root } = parseYaml(source, {})
  const secrets = secretRanges(source, root, readSchema())
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, schema: 'core' })
  document.commentBefore = null
  document.comment = null
  const referred = new Set<string>()
  visit(document, { Alias: (_, { source }) => void referred.add(source) })
  visit(document, {
    Node: (_, node) => {
      node.commentBefore = null
      node.comment = null
      // The beginning of a secret, perhaps, that starts with & and has a space in it.
      if (!isAlias(node) && node.anchor !== undefined && !referred.has(node.anchor)) delete node.anchor
      if (isScalar(node)) mask(node, secrets)
    },
    Pair: (_, { key, value }) => {
      if (isScalar(key) && key.value === 'sha256' && isScalar(value)) shortenDigest(value)
    },
  })
  return document.toString({ lineWidth: 0 })
}

function mask(node: Scalar, secrets: readonly Range[]): void {
  const [start = 0, end = 0] = node.range ?? []
  if (overlapping(secrets, { start, end }).length === 0) return
  node.value = typeof node.value === 'string' ? maskedText(node.value) : MASK
  // How it was written belongs to what was written.
  delete node.source
}

/** Enough of a digest to tell two keys apart. */
function shortenDigest(node: Scalar): void {
  const { value } = node
  if (typeof value !== 'string' || value.includes('${')) return
  node.value = `${value.slice(0, DIGEST_PREFIX_LENGTH)}…`
  delete node.source
}

/** What is read from the environment stays unread; what stands there itself goes. */
function maskedText(value: string): string {
  return splitReferences(value).map(piece => {
    if (piece.kind !== 'reference') return MASK
    return piece.fallback === null || piece.fallback === '' ? piece.raw : `\${${piece.name}:-${MASK}}`
  }).join('')
}
