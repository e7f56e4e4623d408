import { parseBounded } from '../../base/json-size.ts'
import { errorType } from '../shared/error-types.ts'

/** The error types of Anthropic's API for Bedrock's exceptions, whose names are in lower case. */
const TYPES: ReadonlyMap<string, string> = new Map(Object.entries({
  accessdeniedexception: 'permission_error', internalserverexception: 'api_error', modelerrorexception: 'api_error',
  modelnotreadyexception: 'overloaded_error', modelstreamerrorexception: 'api_error', modeltimeoutexception: 'timeout_error',
  resourcenotfoundexception: 'not_found_error', servicequotaexceededexception: 'rate_limit_error',
  serviceunavailableexception: 'overloaded_error', throttlingexception: 'rate_limit_error', validationexception: 'invalid_request_error',
}))

/** ARNs, which are removed because they name the operator's resources. */
const ARN = /\barn:aws[^\s"'`,;)\]]*/g

/** @param exception `x-amzn-errortype`; empty = none @param status null = in a stream @returns the error in Anthropic's format, as JSON */
export function errorJson(exception: string, status: number | null, body: Buffer): string {
  const name = /^[a-z]+/i.exec(exception)?.[0].toLowerCase() ?? ''
  return JSON.stringify({ type: 'error', error: { type: TYPES.get(name) ?? errorType(status), message: messageOf(body) } })
}

function messageOf(body: Buffer): string {
  try {
    const { message, Message: capital, originalMessage } = parseBounded(body.toString('utf8')) as Record<string, unknown>
    const text = [message, capital, originalMessage].find(value => typeof value === 'string' && value !== '')
    if (typeof text === 'string') return text.replace(ARN, 'arn:***')
  } catch {
    // The body is not JSON. A proxy in front of the provider may have sent it.
  }
  return 'the upstream responded with an error'
}
