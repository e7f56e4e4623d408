import { GatewayError } from '../../../base/errors.ts'
import { haveTooManyObjects } from './arguments-size.ts'
import { CapsuleReader, type CapsuleAccess } from '../capsule.ts'
import { fitRequest } from '../accepts.ts'
import { reportFields, startReport } from '../fields.ts'
import { wrapFreeform } from './freeform.ts'
import type { JsonObject } from '../json.ts'
import type { NeutralRequest } from '../request.ts'
import { ToolNames } from './tool-names.ts'
import type { ClientSide, UpstreamSide, WriteContext, WrittenRequest } from '../translation.ts'

export interface TranslatedRequest extends WrittenRequest {
  /** Paths in the client's body of fields and content that the target does not get. */
  readonly dropped: readonly string[]
  readonly request: NeutralRequest
  /** The renamed tools; null = the target gets the client's names. */
  readonly toolNames: ToolNames | null
}

/**
 * @param given the client's body
 * @param options `stream`: whether the path asks for a stream, for protocols whose body has no field for that
 * @throws GatewayError not_translatable, body_too_large, and errors of opening a capsule
 */
export function translateRequest(
  client: Pick<ClientSide, 'fields' | 'normalize' | 'readRequest'>, upstream: Pick<UpstreamSide, 'support' | 'takesFreeformTools' | 'writeRequest'>,
  given: JsonObject,
  { stream, capsules, ...target }: Omit<WriteContext, 'report'> & { readonly stream: boolean, readonly capsules: CapsuleAccess },
): TranslatedRequest {
  const body = client.normalize?.(given) ?? given
  const report = startReport(client.fields)
  reportFields(body, client.fields, upstream.support, report)
  const request = client.readRequest(body, { report, stream, capsules: new CapsuleReader(capsules, report) })
  report.dropUnread()
  if (haveTooManyObjects(argumentsOf(request))) {
    throw new GatewayError('body_too_large', 'the arguments of the calls have too many values to be translated')
  }
  const { accepts } = target
  const toolNames = accepts.toolName === undefined ? null : new ToolNames(accepts.toolName)
  const fitting = fitRequest(toolNames?.rename(request) ?? request, accepts, report)
  const written = upstream.writeRequest(upstream.takesFreeformTools ? fitting : wrapFreeform(fitting), { ...target, report })
  return { ...written, dropped: report.dropped, request, toolNames }
}

function* argumentsOf({ messages }: NeutralRequest): Generator<string, void, undefined> {
  for (const { parts } of messages) for (const part of parts) if (part.type === 'tool_call' && !part.isFreeform) yield part.arguments
}
