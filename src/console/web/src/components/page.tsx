import { useEffect, useId } from 'react'
import type { ReactNode } from 'react'
import { useFailedRefetch } from '../ask.ts'
import { timeUtc } from '../format.ts'
import { Notice } from './notice.tsx'
import classes from './page.module.css'

export interface PageProps {
  readonly title: string
  /** One sentence: what the page is for. */
  readonly about?: ReactNode
  /** What bears on the whole page: the time, a download. */
  readonly actions?: ReactNode
  readonly children: ReactNode
}

/** A page: its heading, then its parts one below the other. */
export function Page({ title, about, actions, children }: PageProps) {
  useEffect(() => { document.title = `${title} · Model Gateway` }, [title])
  return (
    <>
      <div className={classes.head}>
        <div className={classes.title}>
          <h1>{title}</h1>
          {about !== undefined && <p className={classes.about}>{about}</p>}
        </div>
        {actions !== undefined && <div className={classes.actions}>{actions}</div>}
      </div>
      <Outdated />
      <div className={classes.stack}>{children}</div>
    </>
  )
}

/** Says of when the page is, if it cannot be read anew. */
function Outdated() {
  const failed = useFailedRefetch()
  return (
    <output className={classes.outdated}>
      {failed && (
        <Notice tone="warn">
          {failed.error?.message} What stands here is of {timeUtc(failed.dataUpdatedAt)} UTC.
        </Notice>
      )}
    </output>
  )
}

export interface SectionProps {
  readonly title: string
  readonly about?: ReactNode | undefined
  readonly actions?: ReactNode
  /** Tables reach to the edges. */
  readonly flush?: boolean
  readonly children: ReactNode
}

/** A part of a page, with a heading of the second order. */
export function Section({ title, about, actions, flush = false, children }: SectionProps) {
  const id = useId()
  return (
    <section className={classes.section} aria-labelledby={id}>
      <header>
        <div>
          <h2 id={id}>{title}</h2>
          {about !== undefined && <p>{about}</p>}
        </div>
        {actions}
      </header>
      <div className={flush ? classes.flush : classes.body}>{children}</div>
    </section>
  )
}

/**
 * Parts side by side where there is room for them.
 * @param least - the width below which one goes under, in rem
 */
export function Columns({ least, children }: { readonly least: number; readonly children: ReactNode }) {
  return <div className={classes.columns} style={{ '--least': `${least}rem` }}>{children}</div>
}

export function Stack({ children }: { readonly children: ReactNode }) {
  return <div className={classes.stack}>{children}</div>
}
