import { Button } from '@mantine/core'
import { useId, useState } from 'react'
import type { Configuration } from '../../../../api/routes.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Empty } from '../../components/page/states.tsx'
import { Time } from '../../components/time.tsx'
import { timeUtc, visible } from '../../format.ts'
import classes from './reloads.module.css'

type Reload = Configuration['reloads'][number]

/** The last reloads, the newest first: the time, the gateway, who requested it, and what changed or why it was rejected. */
export function Reloads({ reloads }: { readonly reloads: readonly Reload[] }) {
  if (reloads.length === 0) {
    return <Empty title="No reloads">Each reload appears here, with what changed. The last 20 of each gateway are kept.</Empty>
  }
  return (
    <ol className={classes.list}>
      {reloads.map(reload => <ReloadItem key={`${reload.gateway} ${reload.at} ${reload.applied}`} reload={reload} />)}
    </ol>
  )
}

function ReloadItem({ reload }: { readonly reload: Reload }) {
  const { gateway, at, applied, by, changes, problems, diff } = reload
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const texts = applied ? changes : problems
  const title = gateway === null ? timeUtc(at) : `${timeUtc(at)} at ${visible(gateway)}`
  const hasDiff = diff?.some(({ kind }) => kind === 'added' || kind === 'removed') === true
  return (
    <li className={classes.item}>
      <div className={classes.head}>
        <StatusBadge tone={applied ? 'good' : 'bad'}>{applied ? 'Reloaded' : 'Rejected'}</StatusBadge>
        <span><Time at={at} /> UTC</span>
        {gateway !== null && <span>{visible(gateway)}</span>}
        <span className="dim">{by}</span>
        {hasDiff && (
          <Button variant="subtle" size="compact-sm" aria-expanded={isOpen} aria-controls={id} onClick={() => { setOpen(!isOpen) }}>
            {isOpen ? 'Hide changes' : 'Show changes'}<span className="unseen"> of {title}</span>
          </Button>
        )}
      </div>
      {texts.length === 0
        ? <p className="dim">Nothing changed.</p>
        : <ul className={classes.texts}>{texts.map(text => <li key={text}>{text}</li>)}</ul>}
      {diff === null && <p className="dim">The file could not be read, or too much changed to list it.</p>}
      <div id={id}>{isOpen && diff !== null && <Diff diff={diff} label={`Changes of ${title}`} />}</div>
    </li>
  )
}

const SIGNS: Readonly<Record<NonNullable<Reload['diff']>[number]['kind'], string>> = { added: '+', removed: '−', same: ' ', gap: '⋯' }

function Diff({ diff, label }: { readonly diff: NonNullable<Reload['diff']>; readonly label: string }) {
  return (
    <CodeBlock label={label}>
      {diff.map(({ kind, line, text }) => (
        <span key={`${kind} ${line}`} className={classes[kind]} data-number={kind === 'gap' ? '' : line}>
          {SIGNS[kind]} {text}{'\n'}
        </span>
      ))}
    </CodeBlock>
  )
}
