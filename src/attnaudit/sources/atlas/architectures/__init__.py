"""Networks that neither timm nor transformers has, written from the shapes of their weights and what is published.

Each attends through torch's `scaled_dot_product_attention` or `nn.MultiheadAttention`, where capture sees it.
"""
