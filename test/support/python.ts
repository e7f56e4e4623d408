import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The directory in which `test/clients/install` installs the Python SDKs. */
const VENV = fileURLToPath(new URL('../clients/.venv', import.meta.url))

/** Are the Python SDKs of the vendors installed, in the tested versions? */
export const HAS_SDKS = existsSync(`${VENV}/installed`)

/** The Python interpreter with the SDKs if they are installed, else any. */
export const PYTHON = process.env['PYTHON'] ?? (HAS_SDKS ? `${VENV}/bin/python` : 'python3')
