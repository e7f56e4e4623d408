import { Button, Skeleton } from '@mantine/core'
import { IconAlertTriangle, IconInbox } from '@tabler/icons-react'
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import classes from './states.module.css'

/** There is nothing to show, and why, and what would change that. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className={classes.state}>
      <span className={classes.icon} aria-hidden><IconInbox size={20} stroke={1.6} /></span>
      <strong>{title}</strong>
      {children !== undefined && <p>{children}</p>}
    </div>
  )
}

/** What was asked for could not be had. */
export function Failure({ error, retry }: { readonly error: Error; readonly retry?: () => void }) {
  return (
    <div className={`${classes.state} ${classes.error}`} role="alert">
      <span className={classes.icon} aria-hidden><IconAlertTriangle size={20} stroke={1.6} /></span>
      <strong>This could not be loaded</strong>
      <p>{error.message}</p>
      {retry && <Button size="xs" variant="default" mt="xs" onClick={retry}>Try again</Button>}
    </div>
  )
}

/** Until the first answer is there. @param height - of what will be in its place, in px */
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
  /** Of the content, in px: its place is kept while it is loading. */
  readonly height: number
  readonly children: (data: T) => ReactNode
}

/** An answer in each of its states. What was there before stays, paler, until the new one is here. */
export function QueryView<T>({ of: query, height, children }: QueryViewProps<T>) {
  if (query.data !== undefined) {
    return <div className={query.isPlaceholderData ? classes.old : undefined}>{children(query.data)}</div>
  }
  if (query.isError) return <Failure error={query.error} retry={() => { void query.refetch() }} />
  return <Loading height={height} />
}
