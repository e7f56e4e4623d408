import type { Admission } from './types.ts'

/** What somebody without limits gets. */
export const UNLIMITED: Admission = Object.freeze({
  ok: true,
  reservation: Object.freeze({ releaseConcurrency() {}, settle() {}, release() {} }),
})
