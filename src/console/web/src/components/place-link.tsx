import { Link } from 'wouter'
import { lineHref } from '../links.ts'

export interface PlaceLinkProps {
  /** `/etc/gateway.yaml:41:5`; null = the configuration has no place for it. */
  readonly place: string | null
  /** Which text the line is of. */
  readonly text?: 'active' | 'rejected'
}

/** `gateway.yaml:41:5`, with a link to the line. */
export function PlaceLink({ place, text = 'active' }: PlaceLinkProps) {
  const name = place?.split('/').at(-1) ?? 'gateway.yaml'
  const line = /^.*?:(\d+)(?::\d+)?$/.exec(name)?.[1]
  return line === undefined ? <>{name}</> : <Link href={lineHref(Number(line), text)} title={place ?? undefined}>{name}</Link>
}
