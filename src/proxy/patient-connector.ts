import { isIP } from 'node:net'
import { buildConnector } from 'undici'

/**
 * undici's connector, with the whole of its time for a name of several addresses. Node gives each of these
 * half a second, whatever the time, and the last one the rest: where that is out of reach, as an IPv6 address
 * is from most containers, one lost packet at the others was the end of it. The first that ran out of its
 * half second is asked again then, alone.
 */
export function patientConnector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector(options)
  return (target, callback) => {
    connect(target, (...args) => {
      const address = slowAddress(args[0])
      if (address === null) callback(...args)
      else buildConnector({ ...options, ...alone(address) })(target, callback)
    })
  }
}

/** The first address of several to which node's time was too short; null = there is none. */
function slowAddress(error: Error | null): string | null {
  if (!(error?.cause instanceof AggregateError)) return null
  const attempts = error.cause.errors as readonly (NodeJS.ErrnoException & { address?: string })[]
  return attempts.find(({ code }) => code === 'ETIMEDOUT')?.address ?? null
}

type Found = (err: null, address: string, family: number) => void

/** The name is looked up to this address: TLS goes by the name. */
function alone(address: string) {
  return {
    autoSelectFamily: false,
    lookup: (_name: string, _options: unknown, found: Found) => found(null, address, isIP(address)),
  }
}
