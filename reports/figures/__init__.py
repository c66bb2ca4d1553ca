# SPDX-License-Identifier: Apache-2.0
"""Pictures and one HTML page of result files. Numbers are drawn as the files hold them, never computed here."""
