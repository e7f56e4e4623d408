import { Link } from 'wouter'
import { lineHref } from '../links.ts'

export interface PlaceLinkProps {
  /** A position such as `/etc/gateway.yaml:41:5`; null = the configuration has no such position. */
  readonly place: string | null
  /** The text that contains the line: the active file, or the file that was rejected. */
  readonly text?: 'active' | 'rejected'
}

/** Shows a position such as `gateway.yaml:41:5`, with a link to the line. */
export function PlaceLink({ place, text = 'active' }: PlaceLinkProps) {
  const name = place?.split('/').at(-1) ?? 'gateway.yaml'
  const line = /^.*?:(\d+)(?::\d+)?$/.exec(name)?.[1]
  return line === undefined ? <>{name}</> : <Link href={lineHref(Number(line), text)} title={place ?? undefined}>{name}</Link>
}
