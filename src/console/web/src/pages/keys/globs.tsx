import classes from './keys.module.css'

/** Shows patterns of models; null = all models. */
export function Globs({ models }: { readonly models: readonly string[] | null }) {
  if (models === null) return <span className="dim">all models</span>
  if (models.length === 0) return <span className="dim">no models</span>
  const unique = [...new Set(models)]
  return <span className={classes.globs}>{unique.map(glob => <code key={glob}>{glob}</code>)}</span>
}
