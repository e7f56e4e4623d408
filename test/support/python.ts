import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Where `test/clients/install` puts the vendors' Python SDKs. */
const VENV = fileURLToPath(new URL('../clients/.venv', import.meta.url))

/** Has the interpreter the vendors' SDKs, in the versions that are tested? */
export const HAS_SDKS = existsSync(`${VENV}/installed`)

/** A Python interpreter: the one that has the SDKs, if they are installed. */
export const PYTHON = process.env['PYTHON'] ?? (HAS_SDKS ? `${VENV}/bin/python` : 'python3')
