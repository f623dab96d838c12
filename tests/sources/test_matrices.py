import numpy as np
import pytest

from attnaudit.errors import InputError
from attnaudit.sources.matrices import digits, read_matrix


def test_a_matrix_is_read_from_either_kind_of_file(tmp_path):
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.save(tmp_path / "a.npy", matrix)
    np.savetxt(tmp_path / "a.csv", matrix, delimiter=",")
    for name in ("a.npy", "a.csv"):
        np.testing.assert_array_equal(read_matrix(tmp_path / name), matrix)


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", "1,two"), ("a.csv", "1,2\n3"), ("a.npy", "junk"), ("a.csv", "")]
)
def test_what_is_no_matrix_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match="matrix of real numbers"):
        read_matrix(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read"):
        read_matrix(tmp_path / "nowhere.csv")


def test_complex_numbers_are_refused_and_not_cut_off(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(2) * (1 + 1j))
    with pytest.raises(InputError, match="matrix of real numbers"):
        read_matrix(tmp_path / "a.npy")


def test_the_digits_are_there():
    pytest.importorskip("sklearn")
    assert digits().shape == (1797, 64)
