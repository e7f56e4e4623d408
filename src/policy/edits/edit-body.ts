import type { BodyEdits, EditRules } from '../../config/edit-types.ts'
import type { Endpoint, RequestEdits } from '../../protocols/endpoint/protocol.ts'
import { replaceValues, type Edit } from '../../protocols/json/splice.ts'
import { jsonInspection } from '../../protocols/request/inspect.ts'
import { changeMembers, removeMembers, type MemberChange } from '../../protocols/request/member-changes.ts'
import { isPlainCount, outputBoundValues, readOutputBounds } from '../../protocols/request/output-bounds.ts'

/** Names of the configuration that mean a member of each protocol. Other names are members themselves. */
const NEUTRAL: ReadonlySet<string> = new Set([
  'temperature', 'top_p', 'top_k', 'max_output_tokens', 'reasoning_effort', 'stop', 'seed', 'metadata', 'service_tier',
])
const OUTPUT_BOUND = 'max_output_tokens'
const STOP = 'stop'
/** Characters of a value that are read. A valid number is shorter. */
const MAX_NUMBER = 40

export interface EditedRequest {
  readonly endpoint: Endpoint
  /** What the protocol can change; null = the request is not for text, so only its own members are changed. */
  readonly edits: RequestEdits | null
  /** The model needs the other name of the output's bound. */
  readonly usesOtherBound: boolean
}

/** The edits of one step: each step reads the body, a valid JSON object, that the step before has made. */
export type Step = (body: Buffer) => Edit[]

/** What the rules do to a body, in this order. */
export function bodySteps(rules: readonly EditRules[], request: EditedRequest): Step[] {
  const { edits } = request
  const steps = rules.flatMap(({ body: members, system }): Step[] => [
    ...members === null ? [] : memberSteps(members, request),
    ...system === null || edits === null ? [] : [(bytes: Buffer) => edits.addInstructions(bytes, system)],
  ])
  if (edits?.markCache && rules.some(({ cache }) => cache)) steps.push(edits.markCache)
  return steps
}

function memberSteps({ remove, set, default: absent, cap }: BodyEdits, request: EditedRequest): Step[] {
  const removed = remove.flatMap(name => (name === OUTPUT_BOUND ? boundPaths(request) : pathsOf(name, request)))
  const changes = (values: ReadonlyMap<string, unknown>, valueFor: (value: unknown, present: readonly unknown[]) => unknown) =>
    [...values].flatMap(([name, value]) => {
      const isInList = name === STOP && request.edits?.stopIsList && !Array.isArray(value)
      const own = isInList ? [value] : value
      return name === OUTPUT_BOUND ? [] : pathsOf(name, request).map((path): MemberChange => ({ path, valueFor: present => valueFor(own, present) }))
    })
  const limit = cap.get(OUTPUT_BOUND)
  return [
    body => removeMembers(body, removed),
    body => changeMembers(body, changes(set, value => value)),
    ...set.has(OUTPUT_BOUND) ? boundSteps(request, set.get(OUTPUT_BOUND), () => true) : [],
    body => changeMembers(body, changes(absent, (value, present) => (present.every(each => each === null) ? value : undefined))),
    ...absent.has(OUTPUT_BOUND) ? defaultBoundSteps(request, absent.get(OUTPUT_BOUND)) : [],
    body => changeMembers(body, changes(cap, (value, present) => (present.every(each => isWithin(each, value as number)) ? undefined : value))),
    ...limit === undefined ? [] : boundSteps(request, limit, text => !isPlainCount(text) || text === '0' || Number(text) > limit),
  ]
}

function isWithin(value: unknown, limit: number): boolean {
  return value === null || (typeof value === 'number' && value <= limit)
}

/** Bounds the output in every spelling that some server reads, and adds a bound if none holds. @param replaces which values are replaced */
function boundSteps(request: EditedRequest, value: unknown, replaces: (text: string) => boolean): Step[] {
  const { endpoint } = request
  const [path] = boundPaths(request)
  if (path === undefined) return []
  return [
    body => replaceValues(outputBoundValues(endpoint, body).filter(place => replaces(textAt(body, place))), Buffer.from(JSON.stringify(value))),
    // A bound in another spelling may not hold: then the protocol's own is added beside it.
    ...[true, false].map((anySpelling): Step => body => (hasBound(endpoint, body) ? [] : changeMembers(body, [{ path, valueFor: () => value }], anySpelling))),
  ]
}

function defaultBoundSteps(request: EditedRequest, value: unknown): Step[] {
  const [path] = boundPaths(request)
  if (path === undefined) return []
  return [body => {
    const isBounded = outputBoundValues(request.endpoint, body).some(place => textAt(body, place) !== 'null')
    return isBounded ? [] : changeMembers(body, [{ path, valueFor: () => value }])
  }]
}

function textAt(body: Buffer, { start, end }: { readonly start: number, readonly end: number }): string {
  return body.toString('latin1', start, Math.min(end, start + MAX_NUMBER))
}

/** Tells whether a bound holds at every server of the protocol. */
function hasBound(endpoint: Endpoint, body: Buffer): boolean {
  const scan = jsonInspection(false)
  scan.push(body)
  const scanned = scan.end()
  return scanned.ok && readOutputBounds(endpoint, body, scanned.fields).bound !== null
}

/** The paths of the output's bound, first the one that the model needs. */
function boundPaths({ edits, usesOtherBound }: EditedRequest): string[][] {
  const paths = [edits?.members[OUTPUT_BOUND], edits?.otherOutputBound].flatMap(path => (path === undefined ? [] : [path.split('.')]))
  return usesOtherBound ? paths.toReversed() : paths
}

/** @returns nothing if the protocol has no such member */
function pathsOf(name: string, { edits }: EditedRequest): string[][] {
  const path = NEUTRAL.has(name) ? edits?.members[name] : name
  return path === undefined ? [] : [path.split('.')]
}
