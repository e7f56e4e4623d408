import { Button, Skeleton } from '@mantine/core'
import { IconAlertTriangle, IconInbox } from '@tabler/icons-react'
import { useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import classes from './states.module.css'

/** An empty state: says what is missing, and how to get it. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className={classes.state}>
      <span className={classes.icon} aria-hidden><IconInbox size={20} stroke={1.6} /></span>
      <strong>{title}</strong>
      {children !== undefined && <p>{children}</p>}
    </div>
  )
}

/** Says that data could not be loaded. */
export function LoadError({ error, retry }: { readonly error: Error; readonly retry?: () => void }) {
  return (
    <div className={`${classes.state} ${classes.error}`} role="alert">
      <span className={classes.icon} aria-hidden><IconAlertTriangle size={20} stroke={1.6} /></span>
      <strong>Could not load the data</strong>
      <p>{error.message}</p>
      {retry && <Button size="xs" variant="default" mt="xs" onClick={retry}>Try again</Button>}
    </div>
  )
}

/** A placeholder until the first response arrives. @param height - in px */
export function Loading({ height }: { readonly height: number }) {
  return (
    <div aria-busy="true">
      <output className="unseen">Loading</output>
      <Skeleton height={height} radius="md" />
    </div>
  )
}

export interface QueryViewProps<T> {
  readonly of: UseQueryResult<T, Error>
  /** Height in px of the placeholder while the query loads. */
  readonly height: number
  readonly children: (data: T) => ReactNode
}

/** Shows the state of a query: loading, failed or loaded. While new data loads, the old data is shown in a paler colour. */
export function QueryView<T>({ of: query, height, children }: QueryViewProps<T>) {
  const client = useQueryClient()
  if (query.data !== undefined) {
    return <div className={query.isPlaceholderData ? classes.old : undefined}>{children(query.data)}</div>
  }
  // Retry all failed queries of the page together.
  const retry = () => void client.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' })
  if (query.isError) return <LoadError error={query.error} retry={retry} />
  return <Loading height={height} />
}
