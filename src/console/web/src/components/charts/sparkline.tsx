import classes from './sparkline.module.css'

const WIDTH = 200
const HEIGHT = 36

export interface SparklineProps {
  /** At least two values, the oldest first. */
  readonly values: readonly number[]
  readonly colour: string
}

/** A small line chart without axes. Hidden from screen readers. */
export function Sparkline({ values, colour }: SparklineProps) {
  const most = Math.max(...values, Number.MIN_VALUE)
  const step = WIDTH / Math.max(1, values.length - 1)
  const points = values.map((value, index) =>
    `${(index * step).toFixed(1)},${(HEIGHT - 1.5 - Math.max(0, value) / most * (HEIGHT - 3)).toFixed(1)}`)
  return (
    <svg className={classes.sparkline} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none"
      aria-hidden
      style={{ '--colour': colour }}>
      <polygon points={`0,${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}`} />
      <polyline points={points.join(' ')} />
    </svg>
  )
}
