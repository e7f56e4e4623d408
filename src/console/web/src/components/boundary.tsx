import { Component } from 'react'
import type { ReactNode } from 'react'
import { Failure } from './states.tsx'

interface BoundaryState {
  readonly error: Error | null
}

/** A page that fails does not take the navigation with it. */
export class Boundary extends Component<{ readonly children: ReactNode }, BoundaryState> {
  override state: BoundaryState = { error: null }

  static getDerivedStateFromError(error: unknown): BoundaryState {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }

  override render() {
    const { error } = this.state
    return error === null ? this.props.children
      : <Failure error={error} retry={() => { this.setState({ error: null }) }} />
  }
}
