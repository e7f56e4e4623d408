import { useEffect, useId, type ReactNode } from 'react'
import { useFailedRefetch } from '../../api-hooks.ts'
import { timeUtc } from '../../format.ts'
import { Notice } from './notice.tsx'
import classes from './page.module.css'

export interface PageProps {
  readonly title: string
  /** One sentence that says what the page shows. */
  readonly about?: ReactNode
  /** Controls for the whole page, such as the time range. */
  readonly actions?: ReactNode
  readonly children: ReactNode
}

/** A page: heading, controls and sections. */
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
      <StaleNotice />
      <div className={classes.stack}>{children}</div>
    </>
  )
}

/** If a refresh failed, shows the reason, and the age of the data. */
function StaleNotice() {
  const failed = useFailedRefetch()
  return (
    <output className={classes.stale}>
      {failed && (
        <Notice tone="warn">
          {failed.error?.message} Showing data from {timeUtc(failed.dataUpdatedAt)} UTC.
        </Notice>
      )}
    </output>
  )
}

export interface SectionProps {
  readonly title: string
  readonly about?: ReactNode | undefined
  readonly actions?: ReactNode
  /** true = no padding; for tables. */
  readonly flush?: boolean
  readonly children: ReactNode
}

/** A section of a page, with a level 2 heading. */
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

/** Shows sections side by side if the page is wide enough. @param least - minimum width of a section, in rem */
export function Columns({ least, children }: { readonly least: number; readonly children: ReactNode }) {
  return <div className={classes.columns} style={{ '--least': `${least}rem` }}>{children}</div>
}

export function Stack({ children }: { readonly children: ReactNode }) {
  return <div className={classes.stack}>{children}</div>
}
