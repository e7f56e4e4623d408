import { GatewayError } from '../../../src/base/errors.ts'
import { CHAT_SUPPORT } from '../../../src/protocols/chat/write-request.ts'
import { translateRequest } from '../../../src/protocols/neutral/translate/translate-request.ts'
import type { UpstreamSide } from '../../../src/protocols/neutral/translation.ts'
import { PROVIDER, clientSide } from '../translation.ts'
import { nestedMembers } from './nested.ts'
import type { NestedMember } from './nested.ts'
import type { SdkRequests } from './requests.ts'
import { CAPSULES } from '../capsules.ts'

/** `whole`: the object that contains the member is dropped. */
export type NestedOutcome = 'taken' | 'dropped' | 'whole' | 'refused'

export interface NestedRule extends Omit<NestedMember, 'body'> {
  readonly outcome: NestedOutcome
}

/** An upstream that accepts each feature that a reader finds. */
const UPSTREAM: Pick<UpstreamSide, 'support' | 'takesFreeformTools' | 'writeRequest'> = {
  support: CHAT_SUPPORT, takesFreeformTools: true, writeRequest: () => ({ path: '/', body: {}, headers: {} }),
}

/** Outcomes of the members of messages, content and tools in the SDKs' types: reads one request with each member. */
export function nestedOutcomes(): Readonly<Record<keyof SdkRequests, readonly NestedRule[]>> {
  const members = nestedMembers((protocol, member) => outcomeOf(protocol, member) === 'taken')
  return Object.fromEntries(Object.entries(members).map(([protocol, list]) => {
    const rules = list.filter(({ parent }) => parent !== '').map(member => {
      const { parent, kind, name } = member
      return [`${parent} ${kind} ${name}`, { parent, kind, name, outcome: outcomeOf(protocol, member) }] as const
    })
    return [protocol, [...new Map(rules).values()]]
  })) as Record<keyof SdkRequests, NestedRule[]>
}

function outcomeOf(protocol: string, { parent, kind, name, body }: NestedMember): NestedOutcome {
  try {
    const { dropped } = translateRequest(clientSide(protocol), UPSTREAM, body, { stream: false, model: 'm', asksForUsage: false, provider: PROVIDER, accepts: {}, capsules: CAPSULES })
    if (dropped.includes(`${parent}.${name}`)) return 'dropped'
    return dropped.includes(`${parent}.${kind}`) ? 'whole' : 'taken'
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'not_translatable') return 'refused'
    throw error
  }
}
