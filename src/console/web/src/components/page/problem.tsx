import { IconAlertTriangle } from '@tabler/icons-react'
import classes from './problem.module.css'

/** An error message beside the control that caused it. */
export function Problem({ error }: { readonly error: Error }) {
  return (
    <p className={classes.problem} role="alert">
      <IconAlertTriangle size={16} stroke={1.8} aria-hidden />
      <span>{error.message}</span>
    </p>
  )
}
